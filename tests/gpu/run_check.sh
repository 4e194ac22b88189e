#!/bin/sh
# Every example on the card against the tile-level reference, at ordinary sizes and at sizes that leave ragged tiles.
. "$ROOT/tests/gpu/common.inc"
need_gpu

for kernel in gemm_relu elementwise_add rms_norm; do
	check "$kernel" "$TL" run "$ROOT/examples/$kernel.tl" --gpu --check
done
RAGGED="1 63 64 65 127 128 129 191 257"
run_sizes gemm_relu M "$RAGGED" --set N=128 --set K=128
run_sizes gemm_relu N "$RAGGED" --set M=128 --set K=128
run_sizes gemm_relu K "$RAGGED" --set M=128 --set N=128
check "gemm_relu all odd" "$TL" run "$ROOT/examples/gemm_relu.tl" --gpu --check --set M=131 --set N=137 --set K=139
run_sizes elementwise_add M "$RAGGED" --set N=256
run_sizes elementwise_add N "$RAGGED" --set M=64
run_sizes rms_norm M "$RAGGED" --set N=320
run_sizes rms_norm N "1 95 96 97 320 1024 1023" --set M=17
finish
