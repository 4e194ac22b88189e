$TL analyze gemm.tl --no-db --set block_M=256 --set block_N=256 --set block_K=128 --set M=256 --set N=256 > $TMP/text; code=$?; grep -E "violated|^  sm_|does not fit" $TMP/text; exit $code
