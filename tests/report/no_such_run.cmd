export TILELAYOUT_DB="$TMP/t.db"
"$TL" analyze gather.tl > "$TMP/out" && "$TL" report nightly 1
