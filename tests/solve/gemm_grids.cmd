for policy in Square FullRow FullCol; do for threads in 64 128 256 512; do
	echo "$policy $threads: $($TL emit gemm.tl --stage=solution --set block_M=128 --set block_N=128 --set threads=$threads --set policy=$policy | grep "mma\.m16n8k16\.")"
done; done
