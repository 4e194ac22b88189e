$TL layout gemm.tl --buffer
