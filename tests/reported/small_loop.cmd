# The fragment's layout covers all 256 elements, whichever loop comes first; what nobody wrote is told.
for sets in "first=100" "first=256 second=100" "first=256"; do
	words=$(for word in $sets; do echo "--set $word"; done)
	echo "$sets: $($TL layout small_loop.tl --buffer f $words | awk -F, 'NR > 1 { seen[$3 "," $4]++; n++ } END { for (place in seen) m++; print n " elements in " m " places" }')"
	$TL analyze small_loop.tl --no-db $words | grep -A 1 -e coverage -e happens-before
done
