# Rows of 72 and 104 elements need no swizzle.
for n in 64 72 104 96; do
	$TL emit gemm.tl --stage=solution --set block_N=$n --set N=1248 |
		awk '/^\tshared B_shared/ { on = 1; print; next } /^\t[a-z]/ { on = 0 } on && /candidate/'
done
