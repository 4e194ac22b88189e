$TL swizzle --shape 64x64 --dtype flaot16 --access st.row.16
