$TL layout gemm.tl --buffer A_shared | sed -n "1,4p;30,50p"
