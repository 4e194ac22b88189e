# A limit on the size of files stands for a full disk: the earlier run is still there, the new one is not.
export TILELAYOUT_DB="$TMP/t.db"
export SOURCE_DATE_EPOCH=0
"$TL" analyze gather.tl > "$TMP/out" || exit
(ulimit -f 1; "$TL" analyze "$ROOT/examples/gemm_relu.tl") | head -n 1
"$TL" db list
