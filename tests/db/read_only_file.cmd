[ "$(id -u)" != 0 ] || { echo "root may write everywhere"; exit 77; }
"$TL" analyze gather.tl > "$TMP/out" && chmod a-w "$TILELAYOUT_DB" && "$TL" analyze gather.tl > "$TMP/out"
