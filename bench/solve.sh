#!/bin/sh
# What the solver costs: sh bench/solve.sh [--list CASES] [FILE...]; the repository's examples by default.
# Prints a line a kernel (status, milliseconds of CPU time in solve_launch, instructions, gap, kernel) and the medians.
# CASES: a line a kernel, words of `analyze` with tabs between them.  REPEATS=5: the median of so many runs.
# Instructions come from the processor, else with CALLGRIND=1 from valgrind (slow: each kernel runs once more under it).
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
BUILD=${BUILD:-$ROOT/build}
REPEATS=${REPEATS:-5}
BENCH=$BUILD/bench/solve_bench
make -s -C "$ROOT" "$BENCH"

[ $# -gt 0 ] || set -- "$ROOT"/examples/*.tl
"$BENCH" --repeats "$REPEATS" "$@" > "$BUILD/bench/solve.txt"
if [ "${CALLGRIND:-0}" = 1 ] && command -v valgrind > /dev/null; then
	"$BENCH" --repeats 1 --callgrind "$BUILD/bench/solve.txt" > "$BUILD/bench/counted.txt"
	mv "$BUILD/bench/counted.txt" "$BUILD/bench/solve.txt"
fi
cat "$BUILD/bench/solve.txt"
python3 - "$BUILD/bench/solve.txt" << 'END'
import collections, statistics, sys

rows = [line.split() for line in open(sys.argv[1])]
solved = [r for r in rows if r[0] in ("optimal", "best")]
print("\n%d kernels: %s" % (len(rows), ", ".join("%d %s" % (n, s) for s, n in collections.Counter(r[0] for r in rows).items())))
if solved:
    ms = [float(r[1]) for r in solved]
    print("solved: median %.2f ms, largest %.1f ms" % (statistics.median(ms), max(ms)))
counts = [int(r[2]) for r in solved if r[2] != "-"]
if counts:
    print("instructions: median %.1f million, largest %.0f million" % (statistics.median(counts) / 1e6, max(counts) / 1e6))
else:
    print("instructions: this machine does not count them (perf_event_open); CALLGRIND=1 asks valgrind")
gaps = [float(r[3]) for r in rows if r[0] == "best"]
if gaps:
    print("best found, not proved: median gap %.1f %%, largest %.1f %%" % (100 * statistics.median(gaps), 100 * max(gaps)))
END
