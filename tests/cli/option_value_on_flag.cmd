$TL analyze gemm.tl --strict=1
