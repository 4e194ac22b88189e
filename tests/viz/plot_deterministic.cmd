$TL plot ../cli/gemm.tl --buffer C_local -o $TMP/a.svg && $TL plot ../cli/gemm.tl --buffer C_local > $TMP/b.svg && cmp $TMP/a.svg $TMP/b.svg && echo same
