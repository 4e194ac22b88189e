$TL swizzle --shape 128x128 --access st.row.16 --access "8*ldmatrix.x4" --access ld.col.2 --access ld.mma.4
