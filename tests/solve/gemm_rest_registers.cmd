# An operand in registers with any K: half a step, a rest that only some lanes have, less than a step.
for a in a b; do
	for types in "float16 float32" "float32 float32" "int8 int32"; do
		set -- $types
		for k in 40 13 4; do
			case $a in a) side="--set a=fragment" ;; b) side="--set b=fragment" ;; esac
			$TL run gemm_types.tl --sim --check --set K=$k --set dtype=$1 --set acc=$2 $side --set tb=1 | tail -n 1
		done
	done
done
$TL analyze gemm_types.tl --no-db --set K=40 --set a=fragment | grep -e "A_local" -e "last k step" -e "properties  "
# Accumulators become the operand without a conversion, 104 columns of them.
$TL run gemm_chain.tl --sim --check | tail -n 1
$TL analyze gemm_chain.tl --no-db | grep -e "fragment (" -e "last k step" -e "properties  "
