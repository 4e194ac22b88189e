STEPS="kernels analyze" sh check.inc gemm_grouped
