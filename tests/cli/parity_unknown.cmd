$TL analyze gemm.tl --parity triton
