$TL analyze gemm.tl --no-db | sed "/^Properties/,\$d"
