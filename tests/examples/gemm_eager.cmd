sh check.inc gemm_eager --set M=130 --set N=72 --set K=96
