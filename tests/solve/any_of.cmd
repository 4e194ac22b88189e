# One line a setting: all properties proved, simulated, compared.
check() {
	kernel=$1
	shift
	words=""
	for word in "$@"; do words="$words --set $word"; done
	{ $TL run any_of.tl --sim --check --kernel $kernel.main $words && $TL analyze any_of.tl --no-db --kernel $kernel.main $words; } > $TMP/out 2>&1 &&
		! grep -q "not proved" $TMP/out && echo "$kernel $* ok" || { echo "$kernel $*"; cat $TMP/out; }
}
check rows
check rows M=32 threads=64
check rows first=0 last=64
check places
check places N=64 dtype=float16
check places M=256 N=20 dtype=int32
check masked
check masked all=True
check masked where=shared
check masked where=own all=True
check masked parts=12 where=shared
check masked parts=12
$TL run any_of.tl --sim --check --kernel guarded.main
check own
check own M=512 threads=32
# The swizzle by its definition, of halves and of words: 16-byte chunk c of row r is at c ^ r % 8.
for buffer in x words; do
	$TL layout any_of.tl --kernel rows.main --buffer $buffer |
		awk -F, -v bytes=$([ $buffer = x ] && echo 2 || echo 4) 'function xor(a, b) { return (a + b) % 2 + (a > 1 || b > 1 ? 2 * xor(int(a / 2), int(b / 2)) : 0) }
			FNR > 1 { chunk = int($2 * bytes / 16); bad += $3 != $1 * 128 + xor(chunk, $1 % 8) * 16 + $2 * bytes % 16; n++ } END { print n, "elements,", bad + 0, "elsewhere" }'
done
$TL analyze any_of.tl --no-db --kernel rows.main | sed -n '/^Shared/,/^Targets/p'
$TL emit any_of.tl --kernel masked.main --stage=warp | grep -B3 -A1 "if Mask"
$TL analyze any_of.tl --no-db --kernel refused.main
