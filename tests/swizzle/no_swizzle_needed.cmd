$TL swizzle --shape 64x72 --access st.row.16 --access ldmatrix.x2 && $TL swizzle --shape 64x104 --access st.row.16 --access ldmatrix.x2
