export SOURCE_DATE_EPOCH=0
gemm=$ROOT/examples/gemm_relu.tl
"$TL" analyze "$gemm" > "$TMP/out" && "$TL" analyze "$gemm" --set M=2048 --target sm_89 > "$TMP/out" && "$TL" report 1 2
