"$TL" analyze gather.tl --db "$TMP" > "$TMP.out"
