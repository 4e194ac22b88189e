# What K leaves behind the whole steps, for every operand type and orientation: what the simulator finds wrong is printed.
for types in "float16 float32" "bfloat16 float32" "float32 float32" "int8 int32" "float8_e4m3 float32"; do
	set -- $types
	for ta in False True; do for tb in False True; do for k in 8 20 50; do
		$TL run gemm_types.tl --target sm_89 --set dtype=$1 --set acc=$2 --set ta=$ta --set tb=$tb --set K=$k \
			--sim --check > $TMP/out 2>&1 || { echo "$types ta=$ta tb=$tb K=$k"; cat $TMP/out; }
	done; done; done
	echo "$types: 12 gemms"
done
# Half a step is read by ldmatrix without conflicts where the rows' pitch is an odd multiple of 16 bytes, or swizzled.
for k in 8 24 40 72 104; do
	echo "$k: $($TL analyze gemm.tl --no-db --set K=$((2 * k)) --set block_K=$k | grep "shared memory ")"
done
# Accumulators that the gemm clears itself.
for types in "float16 float32" "int8 int32"; do
	set -- $types
	$TL run gemm_types.tl --set dtype=$1 --set acc=$2 --set clear=True --sim --check | tail -n 1
done
# The registers of 8-bit floats that the rest leaves empty have a CUDA form.
$TL emit gemm_types.tl --stage=cuda --target sm_89 --set dtype=float8_e4m3 --set K=40 | grep -c "set8(.*, 0)"
