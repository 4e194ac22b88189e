sh check.inc gemm_macro
