"$TL" analyze gather.tl --no-db > "$TMP/out" && [ ! -e "$TILELAYOUT_DB" ] && echo "nothing stored"
