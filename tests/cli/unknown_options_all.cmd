$TL analyze --kernal x --frobnicate gemm.tl
