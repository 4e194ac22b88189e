for how in 0 1 2 3; do for q in 2 3 8; do
	echo "$how $q:$($TL analyze halves.tl --no-db --set how=$how --set q=$q | grep "properties " | tr -s ' ')$($TL run halves.tl --sim --check --set how=$how --set q=$q | sed -n 's/.*: //; $p')"
done; done
$TL layout halves.tl --buffer b --set q=3 | sed -n 1,6p
