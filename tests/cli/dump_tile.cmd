$TL analyze gemm.tl --no-db --dump=tile
