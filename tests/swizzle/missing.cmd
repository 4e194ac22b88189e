$TL swizzle --shape 64x64
