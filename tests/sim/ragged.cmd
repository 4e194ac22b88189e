for kernel in "gemm_relu.tl --set M=129 --set K=33" "elementwise_add.tl --set M=33" "rms_norm.tl --set M=5"; do
	"$TL" run "$ROOT/examples/"$kernel --sim --check --set N=131 | sed 's/error .* tolerance/error ... tolerance/'
done
