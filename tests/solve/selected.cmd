# Copies of a[i] that its threads do not write would be old: refused, and right in a loop of its own.
$TL analyze selected.tl --kernel shared --no-db || echo "exit $?"
$TL run selected.tl --kernel alone --sim --check | tail -n 1
