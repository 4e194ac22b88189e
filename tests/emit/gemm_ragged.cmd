$TL emit gemm.tl --stage=cuda --set M=65 --set N=67 --set K=35
