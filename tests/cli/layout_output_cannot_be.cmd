$TL layout gemm.tl --buffer C_local -o /dev/null/x.csv
