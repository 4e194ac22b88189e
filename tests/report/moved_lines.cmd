# The kernel stands elsewhere in its file; nothing else changed.
export SOURCE_DATE_EPOCH=0
{ echo "# a new comment"; echo; cat gather.tl; } > "$TMP/gather.tl"
"$TL" analyze gather.tl > "$TMP/out" && "$TL" analyze "$TMP/gather.tl" > "$TMP/out" && "$TL" report 1 latest:gather
