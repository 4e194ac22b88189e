$TL swizzle --shape 64x --access st.row.16
