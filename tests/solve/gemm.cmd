$TL emit gemm.tl --stage=solution
