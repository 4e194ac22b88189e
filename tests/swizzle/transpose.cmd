$TL swizzle --shape 16x32 --dtype float32 --access st.row.4 --access ld.col.4
