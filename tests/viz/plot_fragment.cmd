$TL plot ../cli/gemm.tl --buffer C_local --set block_M=32 --set block_N=16 --set block_K=16
