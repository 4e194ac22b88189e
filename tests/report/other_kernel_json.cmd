export SOURCE_DATE_EPOCH=0
"$TL" analyze "$ROOT/examples/gemm_relu.tl" > "$TMP/out" && "$TL" analyze gather.tl > "$TMP/out" && "$TL" report 1 2 --json
