sh check.inc gemm_int8
