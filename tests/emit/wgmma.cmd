# Warpgroup instructions as text: two warpgroups, A and B from shared memory; then A from registers.
$TL emit ../solve/wgmma.tl --target sm_90a --stage=cuda --set M=256 --set N=48 --set K=128 --set block_M=256 --set block_N=48 --set block_K=32 --set threads=256
$TL emit ../solve/gemm_types.tl --target sm_90a --stage=warp --set a=fragment --set tb=True | grep -A 9 'wgmma.fence'
