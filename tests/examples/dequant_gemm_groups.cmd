sh check.inc dequant_gemm_groups
