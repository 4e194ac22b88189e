sh check.inc gemm_fp8 --target sm_90a
