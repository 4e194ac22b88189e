$TL emit gemm.tl --stage=cuda
