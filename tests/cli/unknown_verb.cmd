$TL analyse gemm.tl
