$TL analyze gemm.tl --no-db --dump=schedule,accesses
