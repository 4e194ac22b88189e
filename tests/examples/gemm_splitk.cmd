sh check.inc gemm_splitk
