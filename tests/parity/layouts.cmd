# Every buffer of the kernels against what TileLang's inference chose: element by element, as a hash of the whole map.
gzip -dc "$ROOT/tests/data/tilelang_layouts.tar.gz" | tar -xf - -C "$TMP" || exit 1
cd "$TMP/tilelang_layouts" || exit 1
tail -n +2 layouts.csv > rows
n=0 same=0
while IFS=, read -r name target file sets buffer sha; do
	set -- layout "kernels/$file" --buffer "$buffer" --target "$target" --parity tilelang
	for word in $sets; do set -- "$@" --set "$word"; done
	got=$("$TL" "$@" < /dev/null | tail -n +2 | sha256sum | cut -d ' ' -f 1)
	n=$((n + 1))
	if [ "$got" = "$sha" ]; then same=$((same + 1)); else echo "$name $target $buffer differs"; fi
done < rows
echo "$same of $n buffers as in TileLang"
