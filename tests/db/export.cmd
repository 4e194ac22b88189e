# One file, complete, that is not written over.
export SOURCE_DATE_EPOCH=0
"$TL" analyze gather.tl > "$TMP/out" && "$TL" db export "$TMP/copy.db" && "$TL" db list --db "$TMP/copy.db" || exit
ls "$TMP" | grep copy
"$TL" db export "$TMP/copy.db"
