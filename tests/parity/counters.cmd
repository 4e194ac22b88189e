# Predicted shared wavefronts and ideal of the code that TileLang generates, against those of the card.
gzip -dc "$ROOT/tests/data/tilelang_layouts.tar.gz" | tar -xf - -C "$TMP" || exit 1
cd "$TMP/tilelang_layouts" || exit 1
tail -n +2 counters.csv > rows
while IFS=, read -r name file sets wavefronts ideal; do
	set -- analyze "kernels/$file" --target sm_90a --parity tilelang --json --no-db
	for word in $sets; do set -- "$@" --set "$word"; done
	got=$("$TL" "$@" < /dev/null | awk -F '[:,]' '/"wavefronts":/ { w += $2 } /"ideal":/ { i += $2 } END { printf "%d %d", w, i }')
	if [ "$got" = "$wavefronts $ideal" ]; then echo "$name $got"; else echo "$name $got for $wavefronts $ideal"; fi
done < rows
