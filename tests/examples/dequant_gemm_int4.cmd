sh check.inc dequant_gemm_int4
