# A budget that is used up: the answer says what may be missing. It is counted work, so every run ends alike.
for kernel in turned gemm_chain; do
	for budget in 0.001 50; do
		$TL emit $kernel.tl --stage=solution --solve-budget $budget > $TMP/first
		$TL emit $kernel.tl --stage=solution --solve-budget $budget > $TMP/second
		cmp $TMP/first $TMP/second
		head -n 1 $TMP/first
	done
done
