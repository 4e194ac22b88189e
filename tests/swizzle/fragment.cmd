$TL swizzle --shape 16x16 --access "st.4:thread=i%8*4+j//2%4, slot=j//8*4+i//8*2+j%2" --access ldmatrix.x4
