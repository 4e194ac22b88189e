# Read: the small fragment is replicated. Written: refused, with the element and two threads; a reducer computes it.
for shape in "R=16 G=14 N=448" "R=1 G=224 N=7168"; do
	words=$(for word in $shape; do echo "--set $word"; done)
	for how in read reducer; do
		echo "$shape $how: $($TL analyze replicated.tl --no-db $words --set how=$how | grep "properties " | tr -s ' ')$($TL run replicated.tl --sim --check $words --set how=$how | sed -n 's/.*: //; $p')"
	done
	$TL layout replicated.tl --buffer a $words | awk -F, 'NR > 1 { if ($3 > most) most = $3 } END { print most + 1 " replicas" }'
	$TL analyze replicated.tl --no-db $words --set how=write 2>&1 | grep -e error -e note -e help
done
