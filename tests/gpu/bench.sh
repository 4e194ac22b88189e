#!/bin/sh
# bench gives a time, a rate below what the card can do, and a copy bandwidth; registers stay registers.
. "$ROOT/tests/gpu/common.inc"
need_gpu

sane() {
	kernel=$1
	shift
	"$TL" bench "$ROOT/examples/$kernel.tl" --no-db --json "$@" > "$TMP/bench.json" || return 1
	cat "$TMP/bench.json"
	python3 - "$TMP/bench.json" <<'PYTHON'
import json, sys
d = json.load(open(sys.argv[1]))
assert 0 < d["p10_us"] <= d["median_us"] <= d["p90_us"], "times"
assert d["copy_gbytes_s"] > 50, "copy bandwidth"
assert 0 < d["gbytes_s"] < 3 * d["copy_gbytes_s"], "bandwidth"
assert d["tflops"] is None or 0 < d["tflops"] < 5000, "rate"
assert all(launch["local_bytes"] == 0 for launch in d["launches"]), "local memory is used"
PYTHON
}

check "bench gemm_relu" sane gemm_relu --set M=2048 --set N=2048 --set K=2048
check "bench rms_norm" sane rms_norm --set M=16384 --set N=1024
check "bench elementwise_add" sane elementwise_add
finish
