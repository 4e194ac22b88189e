# What people report: a transposing ldmatrix on column-major 128 x 32, a 128 x 128 transpose of 16-bit elements, and an fp32 tile
# written from accumulators.
best() {
	echo "swizzle $*"
	$TL swizzle "$@" | sed -n -e '/^  /p' -e '/^proved/p' -e '/^best found/p' -e '/^layout/p' -e '/^remark/p'
}
best --shape 128x32 --access ldmatrix.x4.trans.col
best --shape 128x128 --dtype bfloat16 --access st.row.16 --access ld.col.2
best --shape 128x128 --dtype bfloat16 --access st.row.16 --access ld.col.16
best --shape 64x64 --dtype float32 --access st.mma.8 --access ld.row.16
