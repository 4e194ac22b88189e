$TL plot ../cli/gemm.tl --buffer A_shared --set block_M=16 --set block_N=64 --set block_K=16
