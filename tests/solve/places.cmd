# Elements of an argument lie where its annotated layout says; ragged tiles too, and sizes known at the launch.
for kind in turned accumulator rows plain; do for m in 96 100; do
	$TL run places.tl --sim --check --set kind=$kind --set M=$m > $TMP/out 2>&1 || { echo $kind $m; cat $TMP/out; }
	$TL emit places.tl --stage=warp --set kind=$kind --set M=$m | grep ' <- A\[\|A\[.* <- '
done; done
$TL layout places.tl --buffer A | awk -F, 'NR > 1 {
	want = 4 * (((int($1 / 8) * 8 + int($2 / 8)) * 2 + $2 % 2) * 32 + $1 % 8 * 4 + int($2 % 8 / 2))
	if ($3 != want) print "element", $1, $2, "lies at", $3, "not at", want
} END { print NR - 1, "elements" }'
$TL analyze places.tl --no-db | grep ' A \|injectivity'
$TL analyze places.tl --no-db --set kind=plain | grep ' A '
# Two elements in one place.
$TL analyze places.tl --no-db --set kind=collide
