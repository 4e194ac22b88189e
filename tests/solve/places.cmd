# Annotated places with gaps between threads, in no order, or without closed form serve loops and copies all the same.
for kind in even three rev high slots odd; do
	$TL analyze places.tl --set kind=$kind --no-db | grep "properties  "
	$TL run places.tl --set kind=$kind --sim --check | tail -n 1
done
