# One layout for a writer by mma fragments and a reader by rows, without a conflict at any width.
for n in 64 72 96 128; do for out in float16 float32; do
	echo "$n $out"
	$TL emit epilogue.tl --stage=solution --set block_N=$n --set N=1152 --set out=$out |
		awk '/^\tshared C_shared/ { on = 1; print; next } /^\t[a-z]/ { on = 0 } on && /candidate/'
done; done
