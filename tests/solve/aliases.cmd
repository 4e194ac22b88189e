# One line a setting: all properties proved, simulated, compared.
check() {
	kernel=$1
	shift
	words=""
	for word in "$@"; do words="$words --set $word"; done
	{ $TL run aliases.tl --sim --check --kernel $kernel.main $words && $TL analyze aliases.tl --no-db --kernel $kernel.main $words; } > $TMP/out 2>&1 &&
		! grep -q "not proved" $TMP/out && echo "$kernel $* ok" || { echo "$kernel $*"; cat $TMP/out; }
}
check argument
check argument M=21 N=40 block=32 dtype=float32
check argument B=1 M=16 stages=0
check strided
check tile
check tile M=8 N=24 dtype=float32
check tile M=6 N=10 dtype=int32 threads=64
check operand
check operand N=32 K=32 stages=3
check operand stages=0 blocks=1
check groups
check groups M=8 G=2 W=20 dtype=float16
check row
check row columns=32
check scores
check scores G=2 M=32
$TL emit aliases.tl --kernel tile.main --stage=solution
$TL analyze aliases.tl --no-db --kernel torn.main
check widened
