$TL analyze --tagret sm_80 gemm.tl
