# A buffer of 32 or of 256 float32 in front of swizzled tiles: each tile starts where its swizzle's pattern does.
for pad in 32 256; do
	sets="--set M=128 --set N=128 --set K=128 --set block_M=128 --set block_N=64 --set block_K=64 --set threads=128 --set pad=$pad"
	$TL emit wgmma.tl --target sm_90a $sets --stage=warp | grep ^shared
	$TL analyze wgmma.tl --no-db --target sm_90a $sets | grep '^  alignment'
	$TL run wgmma.tl --target sm_90a $sets --sim --check | tail -n 1
done
