# Two databases, every kernel of each: a kernel without a partner is listed.
export SOURCE_DATE_EPOCH=0
gemm=$ROOT/examples/gemm_relu.tl
sed -f good.sed gather.tl > "$TMP/gather.tl"
"$TL" analyze "$TMP/gather.tl" --db "$TMP/base.db" > "$TMP/out" && "$TL" analyze "$gemm" --db "$TMP/base.db" > "$TMP/out" &&
	"$TL" analyze "$ROOT/examples/rms_norm.tl" --db "$TMP/base.db" > "$TMP/out" &&
	"$TL" analyze "$gemm" --db "$TMP/now.db" > "$TMP/out" && "$TL" analyze gather.tl --db "$TMP/now.db" > "$TMP/out" &&
	"$TL" report "$TMP/base.db" "$TMP/now.db"
