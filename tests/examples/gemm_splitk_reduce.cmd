sh check.inc gemm_splitk_reduce
