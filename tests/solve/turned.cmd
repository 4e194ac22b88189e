for mode in shared fragment; do
	$TL run turned.tl --set mode=$mode --sim --check > $TMP/run || exit 1
	tail -1 $TMP/run | sed 's/largest.*: ok/ok/'
done
