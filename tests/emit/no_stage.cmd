$TL emit gemm.tl --stage=sass
