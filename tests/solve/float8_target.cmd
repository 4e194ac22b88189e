$TL analyze gemm_types.tl --no-db --target sm_80 --set M=128 --set N=64 --set K=64 --set dtype=float8_e4m3 --set acc=float32
