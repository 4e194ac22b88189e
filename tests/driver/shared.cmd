. ./device.inc
FAKE_CUDA=shared $TL run ../emit/gemm.tl --gpu --set block_M=128 --set block_N=128
