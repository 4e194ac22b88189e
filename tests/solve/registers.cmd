# An accumulator of 256 registers a thread: nothing is proved about the budget; twice the threads fit.
for threads in 128 256; do
	$TL analyze gemm.tl --no-db --json --set block_M=128 --set block_N=256 --set block_K=64 --set threads=$threads |
		grep -A3 '"name": "budget"'
done
