$TL swizzle --shape 48x48 --dtype float32 --access st.row.4 --access ld.col.4 --max-bytes 9216
