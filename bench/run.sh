#!/bin/sh
# All measurements on this machine's card, beside PyTorch's where it is installed: sh bench/run.sh [FOLDER]
# Writes FOLDER/bench.jsonl (default build/bench), one JSON object a line, and prints a table.
set -u
ROOT=$(cd "$(dirname "$0")/.." && pwd)
TL=${TL:-$ROOT/build/tilelayout}
FOLDER=${1:-$ROOT/build/bench}
mkdir -p "$FOLDER"
RESULTS=$FOLDER/bench.jsonl
: > "$RESULTS"

if ! "$TL" doctor | grep -q '^ *card *present'; then
	echo "no NVIDIA GPU"
	exit 77
fi

# One line of the results: what was run, then the document of bench.
ours() {
	what=$1
	shift
	if "$TL" bench "$@" --no-db --json > "$FOLDER/one.json" 2> "$FOLDER/one.err"; then
		python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); d["what"] = sys.argv[2]; print(json.dumps(d))' \
			"$FOLDER/one.json" "$what" >> "$RESULTS"
	else
		echo "bench $what failed:"
		cat "$FOLDER/one.err" "$FOLDER/one.json"
	fi
}

theirs() {
	python3 "$ROOT/bench/torch_reference.py" "$@" 2>/dev/null | grep -v skipped >> "$RESULTS"
}

for size in 1024 4096; do
	ours "gemm_relu $size" "$ROOT/examples/gemm_relu.tl" --set M=$size --set N=$size --set K=$size
	theirs gemm_relu $size $size $size
done
for columns in 96 320 1024; do
	ours "rms_norm 131072 x $columns" "$ROOT/examples/rms_norm.tl" --set M=131072 --set N=$columns
	theirs rms_norm 131072 $columns
done
ours "elementwise_add 8192" "$ROOT/examples/elementwise_add.tl" --set M=8192 --set N=8192
rm -f "$FOLDER/one.json" "$FOLDER/one.err"

python3 - "$RESULTS" <<'PYTHON'
import json, sys
print("%-28s %12s %12s %10s %10s" % ("what", "median us", "p10..p90", "TFLOP/s", "GB/s"))
for line in open(sys.argv[1]):
    d = json.loads(line)
    spread = "%.1f..%.1f" % (d["p10_us"], d["p90_us"]) if "p10_us" in d else ""
    rate = "%.1f" % d["tflops"] if d.get("tflops") else ""
    size = " ".join(str(d[key]) for key in ("m", "n", "k", "rows", "columns") if key in d)
    print("%-28s %12.2f %12s %10s %10s" % ((d["what"] + " " + size).strip(), d["median_us"], spread, rate,
                                           "%.0f" % d["gbytes_s"] if d.get("gbytes_s") else ""))
    if d.get("copy_gbytes_s"):
        print("%-28s %48s" % ("", "copy %.0f GB/s" % d["copy_gbytes_s"]))
PYTHON
