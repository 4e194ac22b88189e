# Every kind on every type, in both memories; what the simulator finds wrong is printed.
for where in global shared; do for c in "float32 add" "float32 max" "float32 min" "float64 add" "float16 add" "float16 max" \
	"bfloat16 add" "bfloat16 min" "int32 add" "int32 max" "int32 or" "uint32 min" "int64 add" "int16 max" "uint16 or"; do
	for target in sm_80 sm_90a; do
		set -- $c
		$TL run atomics.tl --sim --check --set M=100 --set dtype=$1 --set kind=$2 --set where=$where --target $target \
			> $TMP/out 2>&1 || { echo "$c $where $target"; cat $TMP/out; }
	done
done; done
# Widths, and one thread of those that share an element.
for c in "float32 sm_80" "float32 sm_90a" "float16 sm_80" "bfloat16 sm_80" "bfloat16 sm_90a"; do
	set -- $c
	$TL emit atomics.tl --stage=warp --set dtype=$1 --target $2 | grep ' *red [CR]\['
done
$TL analyze atomics.tl --no-db --set dtype=int32 --set where=shared | grep 'red\.\|replicas\|happens'
$TL analyze atomics.tl --no-db --set where=shared | grep 'red\.'
# What has no atomic.
$TL emit atomics.tl --stage=warp --set dtype=int8
