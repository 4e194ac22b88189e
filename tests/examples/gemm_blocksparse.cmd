sh check.inc gemm_blocksparse
