export SOURCE_DATE_EPOCH=0
sed -f good.sed gather.tl > "$TMP/gather.tl"
"$TL" analyze "$TMP/gather.tl" > "$TMP/out" && "$TL" analyze gather.tl > "$TMP/out" && "$TL" report 1 2 --markdown
