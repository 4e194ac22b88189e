# An index outside of a tile: the element, the thread and the iteration; conditions that exclude it do.
show() {
	$TL analyze bounds.tl --no-db "$@" 2> $TMP/err | sed -n '/^  bounds/,/^  alignment/p' | sed '$d'
	grep 'W0419' $TMP/err
}
show --kernel store
show --kernel store --set rows=65
show --kernel store --set guard=True
show --kernel load
show --kernel load --set chosen=True
show --kernel named
show --kernel named --set trips=11
show --kernel named --set trips=9
show --kernel data
show --kernel store --set shared=False
$TL analyze bounds.tl --no-db --kernel store --set shared=False > /dev/null 2>&1
