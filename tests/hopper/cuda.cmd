# The macros of barriers and bulk copies, tensor maps and what they describe; the warp program is read back alike.
$TL emit gemm_ws.tl --target sm_90a --stage=cuda | grep -v '"+f"' > $TMP/cuda
sed -n -e '/define mbar/,/define tma/p' -e '/_map: /p' -e '/__grid_constant__/p' -e '/tma_load_2d(/p' -e '/mbarrier_[a-z_]*(/p' $TMP/cuda
$TL emit gemm_ws.tl --target sm_90a --stage=warp > $TMP/a.warp
grep -c -e mbarrier -e tma.load $TMP/a.warp
$TL analyze gemm_ws.tl --target sm_90a --no-db --json | tr '{' '\n' | grep '"tma"' | sed 's/.*\("line".*\)}.*/\1/'
