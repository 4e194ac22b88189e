$TL swizzle --shape 64x64 --dtype float32 --access st.row.16 --access ld.col.16
