for s in "3 5 24" "1 5 24" "3 1 7" "2 8 64" "4 3 1" "1 1 1" "2 3 130"; do
	set -- $s
	for t in 32 128 224; do
		$TL run ranks.tl --sim --check --set A=$1 --set B=$2 --set C=$3 --set threads=$t > $TMP/out 2>&1 || cat $TMP/out
	done
done
$TL emit ranks.tl --stage=solution
