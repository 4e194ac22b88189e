$TL analyze gemm.tl --solve-budget soon --config 1.5
