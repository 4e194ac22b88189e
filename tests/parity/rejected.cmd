# Two ordinary kernels for which TileLang finds no layout.
gzip -dc "$ROOT/tests/data/tilelang_layouts.tar.gz" | tar -xf - -C "$TMP" || exit 1
cd "$TMP/tilelang_layouts/kernels" || exit 1
"$TL" layout attention.py --buffer scores --parity tilelang --set policy=FullCol
echo "exit code $?"
"$TL" layout elementwise.py --buffer C_local --parity tilelang --set M=960 --set N=960 --set block_M=5 --set block_N=192
echo "exit code $?"
# The solver takes both: nothing violated (what the first one does with its registers is not known), and the simulator's numbers match.
settings() {
	"$TL" analyze "$@" --no-db | grep "  properties  "
	"$TL" run "$@" --sim --check | tail -n 1
}
settings attention.py --set policy=FullCol --set seq_len=128
settings elementwise.py --set M=960 --set N=960 --set block_M=5 --set block_N=192
