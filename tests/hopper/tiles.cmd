# Linear tiles by bulk copies, wide rows in several boxes, columns outside the tensor; a multiplication that the kernel awaits.
for sets in "columns=36 pitch=40" "columns=512 pitch=512" "columns=64 pitch=32" "rows=300 columns=8 pitch=8"; do
	options=
	for o in $sets; do options="$options --set $o"; done
	$TL run tile_limits.tl --kernel tile --target sm_90a --sim --check --set dtype=float32 $options | grep -e 'no race' -e largest | sed 's/largest error.*: /: /'
done
$TL run tile_limits.tl --kernel gemm --target sm_90a --sim --check | grep -e 'no race' -e largest | sed 's/largest error.*: /: /'
