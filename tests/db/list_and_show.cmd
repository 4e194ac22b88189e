export SOURCE_DATE_EPOCH=0
"$TL" analyze gather.tl > "$TMP/out" && "$TL" analyze ../../examples/gemm_relu.tl > "$TMP/out" || exit
"$TL" db tag 1 main && "$TL" db tag latest main && "$TL" db tag latest v2 && "$TL" db list && "$TL" db show 1 && "$TL" db show main
