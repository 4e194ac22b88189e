# The analysis is printed, then what could not be stored is said.
"$TL" analyze gather.tl --db /proc/tilelayout.db > "$TMP/out"
code=$?
head -n 1 "$TMP/out"
exit $code
