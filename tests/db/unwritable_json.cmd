"$TL" analyze gather.tl --db "$TMP/no/such/folder.db" --json > "$TMP/out"
code=$?
sed -n '/"diagnostics"/,$p' "$TMP/out"
exit $code
