sh check.inc gemm_warp_specialized --target sm_90a
