# Different values in one element of global memory are told; what is read back or a thread's own share is not proved.
for c in "'rows'" "'one row'" "'copies'" "'transposed'" "'neighbour'" "'in place'" "'own'" "'own inside'" "'share'" "'call'"; do
	echo "$c"
	$TL analyze global_order.tl --no-db --set case="$c" 2> /dev/null | sed -n '/^Properties/,$p' | grep -A1 -e ' not proved ' -e violated | grep -v -e ' proved     ' -e '^--'
done
$TL analyze global_order.tl --no-db --set case=copies --set blocks=8 | sed -n '/^  happens-before/,/^  bounds/p'
$TL analyze global_order.tl --no-db --set case=blocks --set blocks=2 > $TMP/blocks
code=$?
sed -n '/^  happens-before/,/^  bounds/p' $TMP/blocks | grep -v bounds
exit $code
