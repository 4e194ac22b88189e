$TL analyze gemm.tl --no-db --out /dev/null/drawings > /dev/null
