# Every operand type, orientation and source: what the simulator finds wrong is printed.
for types in "float16 float32" "float16 float16" "bfloat16 float32" "float32 float32" "int8 int32" "uint8 int32" \
	"float8_e4m3 float32" "float8_e5m2 float32"; do
	set -- $types
	for ta in False True; do for tb in False True; do for a in shared fragment; do for b in shared fragment; do
		$TL run gemm_types.tl --target sm_89 --set dtype=$1 --set acc=$2 --set ta=$ta --set tb=$tb --set a=$a --set b=$b \
			--sim --check > $TMP/out 2>&1 || { echo "$types ta=$ta tb=$tb $a $b"; cat $TMP/out; }
	done; done; done; done
	echo "$types: 16 forms"
done
