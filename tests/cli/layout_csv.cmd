$TL layout gemm.tl --buffer C_local | head -n 4; $TL layout gemm.tl --buffer A_shared | head -n 3; $TL layout gemm.tl --buffer C | tail -n 1
