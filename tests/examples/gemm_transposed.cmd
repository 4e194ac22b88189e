for a in True False; do
	for b in True False; do
		echo "transpose_A=$a transpose_B=$b"
		STEPS="analyze run" sh check.inc gemm_transposed --set transpose_A=$a --set transpose_B=$b --set M=100 --set N=136 --set K=72 || exit $?
	done
done
sh check.inc gemm_transposed
