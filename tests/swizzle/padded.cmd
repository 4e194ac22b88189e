$TL swizzle --shape 48x40 --dtype float32 --access st.row.4 --access ld.col.4 --json
