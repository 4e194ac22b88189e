$TL analyze gemm.tl --db x.db --no-db
