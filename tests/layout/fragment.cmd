$TL layout gemm.tl --buffer C_local | sed -n "1,12p;4090,4097p"
