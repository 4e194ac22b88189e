$TL layout gemm.tl
