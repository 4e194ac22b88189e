# 12 warps over 104 columns, also with FullRow; 17 warps over 288 rows; 96 columns are fine.
$TL analyze gemm.tl --no-db --set M=16 --set N=96 --set block_M=16 --set block_N=96 --set threads=384 | grep "mma\.m16n8k16"
$TL emit gemm.tl --stage=solution --set block_M=16 --set block_N=104 --set threads=384 --set policy=FullRow
$TL emit gemm.tl --stage=solution --set M=288 --set N=8 --set block_M=288 --set block_N=8 --set threads=544
$TL emit gemm.tl --stage=solution --set block_M=16 --set block_N=104 --set threads=384
