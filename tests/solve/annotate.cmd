# Annotated layouts are kept; those that cost conflicts are named with the better one.
for layout in swizzle linear pad torn odd; do
	$TL run annotate.tl --sim --check --set layout=$layout > $TMP/out || cat $TMP/out
	$TL analyze annotate.tl --no-db --set layout=$layout 2> /dev/null | grep '  A_shared' | sed 's/  *$//'
done
