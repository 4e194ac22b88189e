sh check.inc gemm_sparse
