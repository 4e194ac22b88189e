$TL swizzle --shape 64x128 --dtype float32 --access st.mma.8 --access ld.row.16
