$TL swizzle --shape 128x32 --access st.col.16 --access ldmatrix.x4.trans.col
