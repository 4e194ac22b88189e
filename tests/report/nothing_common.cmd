"$TL" analyze "$ROOT/examples/gemm_relu.tl" --db "$TMP/a.db" > "$TMP/out" &&
	"$TL" analyze "$ROOT/examples/rms_norm.tl" --db "$TMP/a.db" > "$TMP/out" &&
	"$TL" analyze gather.tl --db "$TMP/b.db" > "$TMP/out" && "$TL" report "$TMP/a.db" "$TMP/b.db"
