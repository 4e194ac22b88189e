# The edit that analyze names is applied to the kernel, and leaves the excess that it says.
for words in "store.tl" "columns.tl"; do
	"$TL" analyze $words --target sm_90a --parity tilelang --json --no-db > "$TMP/before.json"
	python3 - "$TMP/before.json" "$words" > "$TMP/after.tl" <<'EOF'
import json, re, sys
before = json.load(open(sys.argv[1]))
site = max(before["accesses"], key=lambda a: a["excess"])
print(site["excess"], site["cause"], file=sys.stderr)
print(re.sub(r"lambda.*?\)\}\)|;.*", "...", site["fix"]), file=sys.stderr)
edit = re.match(r"T\.annotate_layout\(\{.*?\}\)(?= leaves)", site["fix"]).group(0)
text = open(sys.argv[2]).read()
print(re.sub(r"( +)(# layouts)", lambda m: m.group(1) + edit, text), end="")
EOF
	"$TL" analyze "$TMP/after.tl" --target sm_90a --parity tilelang --json --no-db |
		python3 -c 'import json, sys; print("left:", sum(a["excess"] for a in json.load(sys.stdin)["accesses"]))'
done 2>&1
