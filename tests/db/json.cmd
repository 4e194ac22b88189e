export SOURCE_DATE_EPOCH=0
"$TL" analyze gather.tl > "$TMP/out" || exit
"$TL" db list --json | grep -v tool_version && "$TL" db show 1 --json | grep -v tool_version && "$TL" db tag 1 main --json
