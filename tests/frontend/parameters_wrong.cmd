$TL emit parameters.tl --stage=tile --set M=100 --set blok=16
