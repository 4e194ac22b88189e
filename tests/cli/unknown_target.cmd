$TL analyze gemm.tl --target sm_81
