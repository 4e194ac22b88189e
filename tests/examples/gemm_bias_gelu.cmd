sh check.inc gemm_bias_gelu
