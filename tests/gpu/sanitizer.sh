#!/bin/sh
# compute-sanitizer finds no bad access (memcheck) and no race in shared memory (racecheck), ragged sizes included.
. "$ROOT/tests/gpu/common.inc"
need_gpu

SANITIZER=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer /opt/nvidia/*/compute-sanitizer 2>/dev/null | tail -n 1)
if [ -z "$SANITIZER" ]; then
	echo "no compute-sanitizer"
	exit 77
fi
if ! "$SANITIZER" --tool memcheck --error-exitcode 9 "$TL" run "$ROOT/examples/elementwise_add.tl" --gpu > "$TMP/probe" 2>&1 &&
	grep -q "Device not supported" "$TMP/probe"; then
	echo "compute-sanitizer does not support this device"
	exit 77
fi

sanitize() {
	sanitizer_tool=$1
	kernel=$2
	shift 2
	check "$sanitizer_tool $kernel $*" "$SANITIZER" --tool "$sanitizer_tool" --error-exitcode 9 \
		"$TL" run "$ROOT/examples/$kernel.tl" --gpu "$@"
}

for tool in memcheck racecheck; do
	sanitize $tool gemm_relu --set M=256 --set N=256 --set K=256
	sanitize $tool gemm_relu --set M=129 --set N=131 --set K=65
	sanitize $tool elementwise_add --set M=127 --set N=129
	sanitize $tool rms_norm --set M=33 --set N=320
	sanitize $tool rms_norm --set M=33 --set N=97
done
finish
