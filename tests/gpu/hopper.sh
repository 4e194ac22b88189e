#!/bin/sh
# Bulk copies, mbarriers and explicit warpgroup instructions on the card against the tile-level reference, at trip counts
# around the number of stages, with tiles that reach outside the tensors, in each swizzle.
. "$ROOT/tests/gpu/common.inc"
need_gpu

ws() {
	check "gemm_ws $*" "$TL" run "$ROOT/tests/hopper/gemm_ws.tl" --target sm_90a --gpu --check "$@"
}
for k in 64 128 192 256 448 1024; do
	ws --set K=$k
done
ws --set M=100 --set N=72
ws --set block_K=32 --set K=256
ws --set block_K=16 --set K=64
ws --set stages=3 --set K=512
ws --set stages=4 --set K=2048 --set M=512 --set N=512 --set block_N=64
check "cp.async reports to a barrier" "$TL" run "$ROOT/tests/hopper/reports.tl" --target sm_90a --gpu --check
check "bulk copies of linear tiles" "$TL" run "$ROOT/tests/hopper/tile_limits.tl" --kernel tile --target sm_90a --gpu --check \
	--set dtype=float32 --set columns=36 --set pitch=40
check "bulk copies of wide rows" "$TL" run "$ROOT/tests/hopper/tile_limits.tl" --kernel tile --target sm_90a --gpu --check \
	--set dtype=float32 --set columns=512 --set pitch=512
check "explicit wgmma" "$TL" run "$ROOT/tests/hopper/tile_limits.tl" --kernel gemm --target sm_90a --gpu --check
check "bench" "$TL" bench "$ROOT/tests/hopper/gemm_ws.tl" --target sm_90a --no-db --set M=4096 --set N=4096 --set K=4096 \
	--set block_M=128 --set stages=4
finish
