$TL swizzle --shape 32x32 --access ldmatrix.x4 --access ldmatrix.x4.col
