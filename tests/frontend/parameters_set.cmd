$TL emit parameters.tl --stage=tile --set M=128 --set dtype=bfloat16
