# One line a setting: all properties proved, simulated, compared.
check() {
	kernel=$1
	shift
	words=""
	for word in "$@"; do words="$words --set $word"; done
	{ $TL run scans.tl --sim --check --kernel $kernel.main $words && $TL analyze scans.tl --no-db --kernel $kernel.main $words; } > $TMP/out 2>&1 &&
		! grep -q "not proved" $TMP/out && echo "$kernel $* ok" || { echo "$kernel $*"; cat $TMP/out; }
}
for reverse in False True; do
	check scan reverse=$reverse
	check scan dim=0 reverse=$reverse
	check scan M=1 N=1000 reverse=$reverse
	for n in 12 20 44 1000; do check spread N=$n threads=$n reverse=$reverse; done
	check spread N=100 threads=128 reverse=$reverse
	check spread M=4 N=12 threads=50 reverse=$reverse
	check spread M=5 N=8 threads=44 reverse=$reverse
	check spread M=2 N=44 threads=88 reverse=$reverse
	check spread M=2 N=96 threads=256 reverse=$reverse
	check scan M=1 N=48 threads=48 reverse=$reverse
	check scan M=3 N=229 op=max reverse=$reverse
	check scan scope=shared reverse=$reverse place=False
	check scan M=100 N=5 dim=0 scope=shared threads=96 reverse=$reverse
	check products dim=0 reverse=$reverse
	check products dim=1 reverse=$reverse
	check products N=96 threads=256 dim=1 reverse=$reverse
done
check scan N=320 dtype=float16
check scan N=130 dtype=int32 op=max
check scan M=1 N=1
check scan M=200 N=3 dim=0 threads=32
$TL emit scans.tl --kernel scan.main --set M=1 --set N=96 --set threads=96 --stage=warp
