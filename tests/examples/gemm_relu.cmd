sh check.inc gemm_relu --set M=130 --set N=72 --set K=96
