# Attention with head sizes that are no powers of two, and some that are no multiples of the instruction's K.
for dim in 40 72 80 96 104 112 136 192; do
	echo "$dim: $($TL run ../../examples/attention.tl --sim --check --set dim=$dim --set seq_len=128 --set heads=1 2>&1 | tail -n 1)"
	$TL analyze ../../examples/attention.tl --no-db --set dim=$dim | grep -e "shared memory " -e "properties  "
done
