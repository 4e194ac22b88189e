$TL swizzle --shape 8x8 --dtype float32 --access "ld.8:((4,8),2):((16,1),8)" --access st.row.8
