#!/bin/sh
# Predicted wavefronts equal measured ones at every site that the model covers.
# With PROFILE_FOLDER set, the documents of `profile --json` are kept there; with PROFILE_CSV set, one row a site is written to that
# file. More kernels: PROFILE_MORE="path path ...".
. "$ROOT/tests/gpu/common.inc"
need_gpu
command -v python3 > /dev/null || { echo "no python3 to read the documents"; exit 77; }
FOLDER=${PROFILE_FOLDER:-$TMP}
CSV=${PROFILE_CSV:-$TMP/sites.csv}
echo "kernel,settings,device,line,buffer,instruction,machine_instructions,predicted_executions,executions,predicted_wavefronts,wavefronts,predicted_ideal,ideal,match" > "$CSV"

# Reads a document of `profile --json` into the CSV file: no site may disagree, and one that has to be compared must be.
compare() {
	python3 - "$1" "$2" "$3" "$CSV" <<'PYTHON'
import csv, json, sys
path, kernel, settings, out = sys.argv[1:]
document = json.load(open(path))
with open(out, "a", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    for site in document["sites"]:
        predicted, measured = site["predicted"], site["measured"]
        rows.writerow([kernel, settings, document["device"], site["line"], site["buffer"], site["instruction"],
                       site["n_instructions"], predicted["executions"], measured["executions"],
                       predicted["wavefronts"], measured["wavefronts"], predicted["ideal"], measured["ideal"],
                       site["match"]])
        print("%-13s line %-3s %-16s %-18s executions %s / %s wavefronts %s / %s ideal %s / %s" % (
            site["match"], site["line"], site["buffer"], site["instruction"], predicted["executions"],
            measured["executions"], predicted["wavefronts"], measured["wavefronts"], predicted["ideal"], measured["ideal"]))
print(document["verdict"])
print(document["limit"])
for row in document["counters"]:
    print("  %-82s %s" % (row["metric"], row["missing"] or row["value"]))
due = [site for site in document["sites"] if site["instruction"].split(".")[0] in ("ld", "st", "ldmatrix", "stmatrix")]
bad = [site for site in due if site["match"] not in ("yes", "not predicted")]
extra = [site for site in document["sites"] if site["match"] in ("NO", "not predicted")]
sys.exit(1 if bad or extra else 0)
PYTHON
}

N_PROFILES=0
profile() {
	file=$1
	shift
	N_PROFILES=$((N_PROFILES + 1))
	name=$(basename "$file" | sed 's/\..*//')
	document=$FOLDER/profile_${name}_$N_PROFILES.json
	"$TL" profile "$file" "$@" --no-db --json > "$document" 2> "$TMP/profile.err"
	code=$?
	if [ $code != 0 ]; then
		echo "FAILED profile $name $* (exit $code)"
		N_FAILED=$((N_FAILED + 1))
	fi
	sed -n '/"diagnostics"/,$p' "$document"
	if grep -q "E074[123])" "$document"; then
		echo "the driver gives no counters to this user"
		exit 77
	fi
	check "profile $name $*" compare "$document" "$name" "$*"
	cat "$TMP/check.out"
}

EXAMPLES=$ROOT/examples
profile "$EXAMPLES/gemm_relu.tl"
profile "$EXAMPLES/gemm_relu.tl" --set M=257 --set N=259 --set K=129
profile "$EXAMPLES/gemm_relu.tl" --set M=256 --set N=256 --set K=256 --set block_K=64
profile "$EXAMPLES/gemm_relu.tl" --set M=256 --set N=256 --set K=256 --set block_M=64 --set block_N=64 --set num_stages=2
profile "$EXAMPLES/elementwise_add.tl"
for n in 96 97 320 1024; do
	profile "$EXAMPLES/rms_norm.tl" --set M=128 --set "N=$n"
done
profile "$ROOT/tests/cli/conflicts.tl"
for file in ${PROFILE_MORE:-}; do
	profile "$file"
done

# What was measured is stored, and a run compared with itself is no regression.
stored() {
	"$TL" profile "$EXAMPLES/gemm_relu.tl" --db "$TMP/x.db" > "$TMP/stored.out" &&
		"$TL" db show latest --db "$TMP/x.db" | grep -q wavefronts && "$TL" report 1 latest --db "$TMP/x.db"
}
check "stored" stored
cat "$TMP/stored.out"
finish
