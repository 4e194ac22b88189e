sh check.inc gemm_batched
