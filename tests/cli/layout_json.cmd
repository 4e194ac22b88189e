$TL layout gemm.tl --buffer C_local --json | head -n 40
