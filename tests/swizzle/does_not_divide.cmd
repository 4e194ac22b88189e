$TL swizzle --shape 63x63 --access st.row.16 --access ldmatrix.x4
