$TL emit gemm.tl --stage=solution --set block_M=16 --set block_N=104 --set threads=384
