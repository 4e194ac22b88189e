# Places that hold no element, where the width and the block's threads do not fit together.
for n in 192 229 256; do
	echo "$n: $($TL analyze widths.tl --no-db --kernel elementwise.main --set N=$n | grep " idle")"
done
$TL analyze widths.tl --no-db --kernel elementwise.main --set N=229 --json | grep -o '"idle_places": *[0-9]*'
