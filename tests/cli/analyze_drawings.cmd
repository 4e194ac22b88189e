$TL analyze gemm.tl --no-db --out $TMP/drawings > /dev/null && ls $TMP/drawings && cat $TMP/drawings/index.html
