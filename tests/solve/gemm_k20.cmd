$TL emit gemm.tl --stage=solution --set block_K=20
