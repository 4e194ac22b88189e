# One line a setting: all properties proved, simulated, compared.
check() {
	kernel=$1
	shift
	words=""
	for word in "$@"; do words="$words --set $word"; done
	{ $TL run reducers.tl --sim --check --kernel $kernel.main $words && $TL analyze reducers.tl --no-db --kernel $kernel.main $words; } > $TMP/out 2>&1 &&
		! grep -q "not proved" $TMP/out && echo "$kernel $* ok" || { echo "$kernel $*"; cat $TMP/out; }
}
for block in 48 64; do for shared in True False; do for replication in all none; do
	check gemv block_N=$block shared=$shared replication=$replication
done; done; done
check gemv threads=48
check eight
for op in max min; do check eight op=$op; done
check eight seed=5.0
check eight extent=200 seed=2.0
check two_loops
check two_loops extent=100
$TL emit reducers.tl --kernel eight.main --set seed=5.0 --stage=warp
