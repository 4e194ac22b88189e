# One line a setting: all properties proved, simulated, compared.
check() {
	{ $TL run reductions.tl --sim --check --kernel "$@" && $TL analyze reductions.tl --no-db --kernel "$@"; } > $TMP/out 2>&1 &&
		! grep -q "not proved" $TMP/out && echo "$* ok" || { echo "$*"; cat $TMP/out; }
}
check shared_tile.main
for op in max min absmax abssum; do check shared_tile.main --set op=$op --set M=7 --set N=229; done
check shared_tile.main --set op=bitand --set dtype=int32 --set clear=False
for dim in 0 1; do check shared_tile.main --set dim=$dim --set clear=False; done
for out in shared fragment; do check shared_tile.main --set out=$out --set dtype=float16 --set N=320; done
for threads in 7 48 96 1000; do check shared_tile.main --set M=3 --set N=100 --set threads=$threads; done
check part.main
check triangle.main
for n in 64 96 100 120 127 128; do check triangle.main --set N=$n --set want=$((n * (n + 1) / 2)); done
for n in 1 2 3 5 8 12 17 31 33 44 80 160 1000; do check triangle.main --set N=$n --set want=$((n * (n + 1) / 2)); done
check in_steps.main
check in_steps.main --set blk_m=4 --set blk_k=16
spread() { check spread.main --set M=$1 --set N=$2 --set threads=$3; }
for n in 12 20 44 1000; do spread 1 $n $n; done
spread 1 100 128; spread 1 44 50; spread 4 12 48; spread 4 12 50; spread 3 8 24; spread 5 8 44; spread 2 44 88; spread 7 9 64
$TL emit reductions.tl --kernel spread.main --set N=44 --stage=warp
