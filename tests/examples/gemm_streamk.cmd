sh check.inc gemm_streamk
