# Widths that are no powers of two, written by 16-byte rows and read by ldmatrix: excess 0 wherever a row is a multiple of 16 bytes.
for width in 40 72 80 96 104 160 192 320 448 576 640 768; do
	echo "$width: $($TL swizzle --shape 64x$width --access st.row.16 --access ldmatrix.x2 | grep -e '^proved' -e '^best found' -e '^layout' -e '^remark' | tr -s ' ' | tr '\n' ';')"
done
# Odd widths: rows and columns of 4-byte elements.
for width in 229 257; do
	echo "$width: $($TL swizzle --shape 64x$width --dtype float32 --access st.row.4 --access ld.col.4 | grep -e '^proved' -e '^best found' -e '^layout' -e '^remark' | tr -s ' ' | tr '\n' ';')"
done
