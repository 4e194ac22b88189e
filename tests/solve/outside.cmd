for s in "" "--set copies=False" "--set dtype=int32 --set value=7" "--set M=64 --set N=64 --set copies=False"; do
	$TL run outside.tl --sim --check $s > $TMP/run || exit 1
	tail -1 $TMP/run | sed 's/largest.*: ok/ok/'
done
$TL emit outside.tl --stage=tile | grep param
