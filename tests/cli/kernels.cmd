$TL kernels gemm.tl; $TL kernels gemm.tl --json
