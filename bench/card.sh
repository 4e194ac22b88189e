#!/bin/sh
# Everything that needs a card, in one call on a machine that has one: sh bench/card.sh FOLDER [PART...]
# Parts, in this order: build doctor run bench sweep sanitizer profile sass ncu; without any, all of them.
# Logs go to FOLDER; each part prints a short summary and is stopped after its time limit.
set -u
ROOT=$(cd "$(dirname "$0")/.." && pwd)
FOLDER=${1:?a folder for the results}
shift
PARTS=${*:-build doctor run bench sweep sanitizer profile sass ncu}
BUILD=${BUILD:-$ROOT/build}
TL=${TL:-$BUILD/tilelayout}
TMP=$FOLDER/tmp
XDG_CACHE_HOME=$FOLDER/tmp/cache
TILELAYOUT_DB=$FOLDER/tilelayout.db
PROFILE_FOLDER=$FOLDER
export ROOT TL TMP BUILD XDG_CACHE_HOME TILELAYOUT_DB PROFILE_FOLDER
mkdir -p "$FOLDER" "$TMP"
cd "$ROOT" || exit 1

# limited SECONDS NAME COMMAND...: output into FOLDER/NAME.log, its end to the terminal.
limited() {
	seconds=$1
	name=$2
	shift 2
	begin=$(date +%s)
	timeout "$seconds" "$@" > "$FOLDER/$name.log" 2>&1
	code=$?
	echo "== $name: exit $code after $(($(date +%s) - begin)) s"
	return $code
}

part_build() {
	limited 200 build make -j"$(nproc)" all || tail -n 20 "$FOLDER/build.log"
}

part_doctor() {
	"$TL" doctor
	nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,clocks_event_reasons.active --format=csv 2>/dev/null
}

part_run() {
	limited 240 run_check sh tests/gpu/run_check.sh
	grep -A 15 FAILED "$FOLDER/run_check.log" | head -n 80
	tail -n 1 "$FOLDER/run_check.log"
}

part_bench() {
	limited 120 bench sh bench/run.sh "$FOLDER"
	cat "$FOLDER/bench.log"
}

# gemm_relu at 4096 with other tiles: TFLOP/s of each.
part_sweep() {
	for config in "128 128 32 3 128" "128 128 64 3 128" "128 128 32 4 128" "128 128 64 2 128" "128 256 32 3 256" "256 128 32 3 256" \
		"128 256 64 3 256" "256 128 64 3 256" "128 128 32 3 256" "128 128 64 3 256" "64 128 64 3 128" "128 64 64 4 128"; do
		set -- $config
		timeout 30 "$TL" bench examples/gemm_relu.tl --no-db --json --repeats 20 --set M=4096 --set N=4096 --set K=4096 \
			--set block_M="$1" --set block_N="$2" --set block_K="$3" --set num_stages="$4" --set threads="$5" \
			> "$TMP/sweep.json" 2> "$TMP/sweep.err"
		python3 - "$config" "$TMP/sweep.json" <<'PYTHON'
import json, sys
try:
    d = json.load(open(sys.argv[2]))
    print("%-20s %8.2f us %7.1f TFLOP/s  %3d registers, %d bytes of local memory, %d of shared memory" % (
        sys.argv[1], d["median_us"], d["tflops"], d["launches"][0]["registers"], d["launches"][0]["local_bytes"],
        d["launches"][0]["shared_bytes"]))
except Exception as error:
    print("%-20s %s %s" % (sys.argv[1], error, open(sys.argv[2]).read()[-300:]))
PYTHON
	done | tee "$FOLDER/sweep.log"
}

part_sanitizer() {
	limited 300 sanitizer sh tests/gpu/sanitizer.sh
	cat "$FOLDER/sanitizer.log" | tail -n 40
}

part_profile() {
	limited 200 profile sh tests/gpu/profile.sh
	tail -n 40 "$FOLDER/profile.log"
}

# What the assembler made of it: instructions by kernel, and whether anything went to local memory.
part_sass() {
	dump=$(command -v cuobjdump || ls /usr/local/cuda*/bin/cuobjdump 2>/dev/null | tail -n 1)
	for kernel in gemm_relu elementwise_add rms_norm; do
		"$TL" emit examples/$kernel.tl --stage=cubin --target sm_90a -o "$TMP/$kernel.cubin" &&
			"$dump" -sass "$TMP/$kernel.cubin" > "$FOLDER/$kernel.sass" 2>&1
		echo "$kernel: $(grep -oE '(HMMA|LDSM|LDGSTS|LDS|STS|LDG|STG|LDL|STL|BAR|SHFL|F2FP|PRMT)[.A-Z0-9_]*' "$FOLDER/$kernel.sass" |
			sort | uniq -c | sort -rn | awk '{printf "%s x %s, ", $1, $2}')"
	done
}

part_ncu() {
	ncu=$(command -v ncu) || return 0
	limited 100 ncu "$ncu" --clock-control none --set full -c 1 "$TL" run examples/gemm_relu.tl --gpu --set M=4096 --set N=4096 --set K=4096
	grep -E "Duration|Throughput|Tensor|Registers|Occupancy|Stall|bank conf|OPT|Issued|Eligible" "$FOLDER/ncu.log" | head -n 40
}

for part in $PARTS; do
	"part_$part"
done
rm -rf "$TMP"
