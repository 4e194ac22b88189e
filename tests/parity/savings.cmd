# The solver's layouts never cost more predicted cycles than TileLang's for the same instructions; what they save.
gzip -dc "$ROOT/tests/data/tilelang_layouts.tar.gz" | tar -xf - -C "$TMP" || exit 1
cd "$TMP/tilelang_layouts" || exit 1
{ tail -n +2 layouts.csv | cut -d , -f 1,2,3,4 | uniq
  echo "attention_d64_fullcol,sm_80,attention.py,policy=FullCol"
  echo "elementwise_192,sm_80,elementwise.py,M=960 N=960 block_M=5 block_N=192"; } > rows
while IFS=, read -r name target file sets; do
	set -- analyze "kernels/$file" --target $target --parity tilelang --json --no-db
	for word in $sets; do set -- "$@" --set "$word"; done
	"$TL" "$@" < /dev/null | python3 -c '
import json, sys
s = json.load(sys.stdin)["savings"]
theirs, own, saved = s["tilelang"], s["own"], s["saved"]
if not theirs:
    print(sys.argv[1], "rejected by TileLang; own excess", own["shared_excess"], "cycles", round(own["cycles"]))
else:
    verdict = "saves" if saved["cycles"] > 0 else "equal" if saved["cycles"] == 0 else "COSTS MORE:"
    print(sys.argv[1], verdict, round(saved["cycles"]), "cycles, excess", theirs["shared_excess"], "->", own["shared_excess"])
' "$name.$target"
done < rows
