echo "these are my notes" > "$TMP/notes.db"
"$TL" analyze gather.tl --db "$TMP/notes.db" > "$TMP/out"
code=$?
cat "$TMP/notes.db"
exit $code
