# Every operand type, orientation and source of A on a target with wgmma: what the simulator finds wrong is printed,
# and how many of the 8 forms use wgmma.
for types in "float16 float32" "float16 float16" "bfloat16 float32" "float32 float32" "int8 int32" "uint8 int32" \
	"float8_e4m3 float32" "float8_e5m2 float32"; do
	set -- $types
	n=0
	for ta in False True; do for tb in False True; do for a in shared fragment; do
		sets="--set dtype=$1 --set acc=$2 --set ta=$ta --set tb=$tb --set a=$a --set M=128 --set N=48"
		$TL run gemm_types.tl --target sm_90a $sets --sim --check > $TMP/out 2>&1 || { echo "$types ta=$ta tb=$tb $a"; cat $TMP/out; }
		n=$((n + $($TL emit gemm_types.tl --target sm_90a $sets --stage=warp | grep -c 'wgmma.fence')))
	done; done; done
	echo "$types: $n of 8 forms with wgmma"
done
