$TL analyze gemm.tl --dump=warpp
