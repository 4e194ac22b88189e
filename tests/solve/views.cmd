# One line a setting: all properties proved, simulated, compared.
check() {
	kernel=$1
	shift
	words=""
	for word in "$@"; do words="$words --set $word"; done
	{ $TL run views.tl --sim --check --kernel $kernel.main $words && $TL analyze views.tl --no-db --kernel $kernel.main $words; } > $TMP/out 2>&1 &&
		! grep -q "not proved" $TMP/out && echo "$kernel $* ok" || { echo "$kernel $*"; cat $TMP/out; }
}
# The view's elements lie where the base's bytes are.
same_bytes() {
	$TL layout views.tl --kernel $1.main --buffer $2 > $TMP/base.csv && $TL layout views.tl --kernel $1.main --buffer $3 > $TMP/view.csv &&
		awk -F, -v wide=$4 'FNR == 1 { next } NR == FNR { at[n++] = $NF; next } { for (p = 0; p < wide; p++) bad += at[m * wide + p] != $NF + p * 2; m++ } END { print m, "elements,", bad + 0, "elsewhere" }' $TMP/base.csv $TMP/view.csv
}
check columns
check columns M=32 N=128
check columns dtype=bfloat16 threads=64
check columns dtype=int8 wide=int32 per=4
check columns dtype=float16 wide=float64 per=4
check columns dtype=uint8 wide=int8 per=1
same_bytes columns x seen 2
check both
check both M=20 N=24 threads=96
check both wide=float64 dtype=float32
check both wide=int32 dtype=uint8 per=4
check both wide=int16 dtype=float16 per=1
check operand
check operand stages=3
check operand stages=0 blocks=1
check reused
check reshaped
check reshaped M=32
check annotated
check annotated unit=8
check annotated of_view=True
check padded pad=2
check tensors
check tensors M=48 N=24
check tensors wide=int32 dtype=int8 per=4
check tensors wide=float64 per=4
check tensors wide=bfloat16 per=1
$TL emit views.tl --kernel columns.main --stage=solution
$TL emit views.tl --kernel reused.main --stage=cuda | grep -n "half" | head -4
$TL analyze views.tl --no-db --kernel tensors.main --set scalar=True > $TMP/out
$TL analyze views.tl --no-db --kernel unwritten.main | grep -A1 "  happens-before"
$TL analyze views.tl --no-db --kernel annotated.main --set unit=1
$TL analyze views.tl --no-db --kernel padded.main
$TL analyze views.tl --no-db --kernel padded.main --set twice=True
