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
make -s -C "$ROOT" BUILD="$BUILD" "$BENCH"

[ $# -gt 0 ] || set -- "$ROOT"/examples/*.tl
"$BENCH" --repeats "$REPEATS" "$@" > "$BUILD/bench/solve.txt"
CALLGRIND=${CALLGRIND:-0} BENCH=$BENCH python3 - "$BUILD/bench/solve.txt" << 'END'
import collections, os, re, statistics, subprocess, sys, tempfile


def counted(words):
    """Instructions inside solve_launch by valgrind; "-" when it cannot run."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as case:
        case.write(words + "\n")
        case.flush()
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=solve_launch",
                   os.environ["BENCH"], "--repeats", "1", "--list", case.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError:
            return "-"
        found = re.search(r"Collected : (\d+)", done.stderr)
        return found.group(1) if found else "-"


rows = []
for line in open(sys.argv[1]):
    head, *rest = line.rstrip("\n").split("\t")
    row = head.split()
    if row[2] == "-" and os.environ["CALLGRIND"] == "1" and row[0] != "refused":
        row[2] = counted("\t".join([row[4], *rest]))
    print("%-9s %9s %13s %7s  %s" % (*row[:4], " ".join([row[4], *rest])))
    rows.append(row)
solved = [r for r in rows if r[0] in ("optimal", "best", "partial")]
print("\n%d kernels: %s" % (len(rows), ", ".join("%d %s" % (n, s) for s, n in collections.Counter(r[0] for r in rows).items())))
if solved:
    ms = [float(r[1]) for r in solved]
    print("solved: median %.2f ms, largest %.1f ms" % (statistics.median(ms), max(ms)))
counts = [int(r[2]) for r in rows if r[2] != "-"]
if counts:
    print("instructions: median %.1f million, largest %.0f million" % (statistics.median(counts) / 1e6, max(counts) / 1e6))
else:
    print("instructions: this machine does not count them (perf_event_open); CALLGRIND=1 asks valgrind")
gaps = [float(r[3]) for r in rows if r[0] in ("best", "partial")]
if gaps:
    print("best found, not proved: median gap %.1f %%, largest %.1f %%" % (100 * statistics.median(gaps), 100 * max(gaps)))
END
