# What was solved also computes the right numbers.
for n in 1 7 96 229 257 320; do for threads in 32 96 128 1024; do for shared in True False; do
	$TL run rows.tl --sim --check --set M=19 --set N=$n --set threads=$threads --set shared=$shared > $TMP/out 2>&1 || { cat $TMP/out; exit 1; }
done; done; done
