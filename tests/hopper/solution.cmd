# The tiles lie as both the bulk copies and the warpgroup instructions want them; boxes are at most 256 elements long.
for options in "" "block_K=32" "block_N=64"; do
	$TL emit gemm_ws.tl --stage=solution --target sm_90a ${options:+--set $options} | grep -A1 -e 'tile' -e tma_copy -e wgmma
done
for columns in 64 36 512; do
	$TL emit tile_limits.tl --kernel tile --stage=solution --target sm_90a --set dtype=float32 --set columns=$columns --set pitch=$columns |
		grep -A1 -e A_tile -e tma_copy
done
