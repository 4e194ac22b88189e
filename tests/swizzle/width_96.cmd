$TL swizzle --shape 64x96 --access cp.async.row.16 --access 4*ldmatrix.x4
