for s in "64 32" "5 24" "16 7" "33 1" "1 40" "100 100"; do
	set -- $s
	for t in 32 96 128; do
		$TL run columns.tl --sim --check --set R=$1 --set C=$2 --set threads=$t > $TMP/out 2>&1 || cat $TMP/out
	done
	echo "$s$($TL emit columns.tl --stage=solution --set R=$1 --set C=$2 | grep -e source -e shuffles)"
done
