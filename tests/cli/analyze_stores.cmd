$TL analyze gemm.tl --db $TMP/runs.db > /dev/null && $TL db list --db $TMP/runs.db | wc -l
