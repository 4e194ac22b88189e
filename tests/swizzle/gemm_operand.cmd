$TL swizzle --shape 64x64 --dtype float16 --access st.row.16 --access ldmatrix.x4
