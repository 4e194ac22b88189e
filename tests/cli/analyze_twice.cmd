$TL analyze gemm.tl --no-db --json > $TMP/a; $TL analyze gemm.tl --no-db --json > $TMP/b; cmp $TMP/a $TMP/b && echo same
