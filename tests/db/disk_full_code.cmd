"$TL" analyze gather.tl > "$TMP/out" || exit
(ulimit -f 1; "$TL" analyze "$ROOT/examples/gemm_relu.tl" > /dev/null 2>&1)
