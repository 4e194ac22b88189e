$TL analyze gemm.tl --parity tilelang --no-db | sed -n "1p; /^Buffers/,/^\$/p; /^Gemm/,/^\$/p"
