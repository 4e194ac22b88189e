# Another seed, other inputs, the same verdict.
for seed in 1 2; do
	"$TL" run "$ROOT/examples/rms_norm.tl" --check --json --seed $seed --set M=8 > "$TMP/$seed.json"
	grep '"ok"' "$TMP/$seed.json" | head -n 1
done
cmp -s "$TMP/1.json" "$TMP/2.json" && echo "same errors"
"$TL" run "$ROOT/examples/rms_norm.tl" --check --json --seed 2 --set M=8 | cmp - "$TMP/2.json"
