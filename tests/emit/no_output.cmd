$TL emit gemm.tl --stage=cuda -o /dev/null/x.cu
