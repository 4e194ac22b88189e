$TL swizzle --shape 64x64 --access foo --access st.row.3 --access st.row.32 --access st.row --access ldmatrix.x3 --access "ld.16:(4,8" --access "ld.4:thread=q" --access "0*ld.row.4"
