sh check.inc gemm_persistent
