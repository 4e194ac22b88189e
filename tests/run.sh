#!/bin/sh
# Runs the tests: sh tests/run.sh [--gpu] [--bless] [WORD...]; a WORD keeps the cases whose name has it.
#
# Cases are found, not registered:
#   build/tests/*_test, *_fuzz   programs; exit 0 passed, 77 skipped (the last line says why), else failed
#   tests/AREA/NAME.cmd          one shell command, run in tests/AREA with $TL (the program), $ROOT, $BUILD and
#                                $TMP (an empty folder).  NAME.out and NAME.err are the expected outputs (not
#                                compared when they are missing), NAME.code the exit code (0 when missing).
#   tests/gpu/*.sh               scripts for a machine with a GPU, only with --gpu; same variables and exit codes
# --bless rewrites the NAME.out, NAME.err and NAME.code that differ.  Ends with: N passed, N failed, N skipped
set -u
unset CDPATH
ROOT=$(cd "$(dirname "$0")/.." && pwd)
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$ROOT/$BUILD ;; esac
TL=$BUILD/tilelayout
TIME_LIMIT_S=${TIME_LIMIT_S:-300}
LC_ALL=C
ASAN_OPTIONS=${ASAN_OPTIONS:-exitcode=99}
UBSAN_OPTIONS=${UBSAN_OPTIONS:-exitcode=99:print_stacktrace=1}
LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$ROOT/tests/lsan.supp:print_suppressions=0}
export ROOT BUILD TL LC_ALL ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS TIME_LIMIT_S

# The program's version changes with every commit, the scratch folder with every run; AddressSanitizer notes once that it
# sees a switch of stacks (base/strands).
normalise() {
	sed -E -e "s|$TMP|TMP|g; s|$ROOT/|ROOT/|g" -e 's/"version": "[^"]*"/"version": "VERSION"/' \
		-e 's/tilelayout [0-9]+\.[0-9]+\.[0-9]+(\+g[0-9a-f]+)?/tilelayout VERSION/g' \
		-e '/WARNING: ASan doesn.t fully support makecontext/d' "$1" > "$1.normal"
}

# Compares $WORK/$1 with the expected file $2, or rewrites that; a missing one is not compared.
compare() {
	[ -f "$2" ] || return 0
	normalise "$WORK/$1"
	cmp -s "$2" "$WORK/$1.normal" && return 0
	if [ "$BLESS" = 1 ]; then
		cp "$WORK/$1.normal" "$2"
		echo "blessed ${2#"$ROOT"/}" >> "$WORK/report"
		return 0
	fi
	diff -u -L "${2#"$ROOT"/}" -L "what came" "$2" "$WORK/$1.normal" | head -n 60 >> "$WORK/report"
	return 1
}

bless_code() {
	if [ "$1" = 0 ]; then rm -f "$2"; elif [ "$1" -lt 4 ]; then echo "$1" > "$2"; else return 1; fi
	echo "blessed ${2#"$ROOT"/}" >> "$WORK/report"
}

# One golden case; what differs goes to $WORK/report. A case that expects nothing could not fail.
run_golden() {
	base=${1%.cmd}
	if [ ! -f "$base.out" ] && [ ! -f "$base.err" ] && [ ! -f "$base.code" ]; then
		if [ "$BLESS" = 0 ]; then
			echo "nothing is expected of this case: no .out, .err or .code; make bless writes .out" > "$WORK/report"
			return 1
		fi
		: > "$base.out"
	fi
	wanted=0
	[ -f "$base.code" ] && wanted=$(cat "$base.code")
	(cd "$(dirname "$1")" && timeout "$TIME_LIMIT_S" sh "$1") > "$WORK/out" 2> "$WORK/err" < /dev/null
	code=$?
	wants_bless=$BLESS
	[ "$code" -lt 4 ] || BLESS=0 # a crash is never blessed
	if [ $code = 77 ] && [ "$wanted" != 77 ]; then
		cp "$WORK/out" "$WORK/report"
		return 77
	fi
	bad=0
	if [ "$code" != "$wanted" ] && ! { [ "$BLESS" = 1 ] && bless_code "$code" "$base.code"; }; then
		echo "exit code $code, expected $wanted" >> "$WORK/report"
		[ -f "$base.err" ] || tail -n 20 "$WORK/err" >> "$WORK/report"
		bad=1
	fi
	compare out "$base.out" || bad=1
	compare err "$base.err" || bad=1
	BLESS=$wants_bless
	return $bad
}

# One case in its own scratch folder: prints its line (and its report), leaves its verdict in $RESULTS.
run_one() {
	WORK=$RESULTS/$(echo "${1#"$ROOT"/}" | tr '/' '_')
	TMP=$WORK/tmp
	mkdir -p "$TMP"
	TILELAYOUT_DB=$WORK/tilelayout.db
	export TMP TILELAYOUT_DB
	: > "$WORK/report"
	case $1 in
	*.cmd) run_golden "$1" ;;
	*.sh) (cd "$(dirname "$1")" && timeout "$TIME_LIMIT_S" sh "$1") > "$WORK/report" 2>&1 < /dev/null ;;
	*) (cd "$ROOT" && timeout "$TIME_LIMIT_S" "$1") > "$WORK/report" 2>&1 < /dev/null ;;
	esac
	code=$?
	name=${1#"$BUILD"/}
	name=${name#"$ROOT"/}
	case $code in
	0) verdict=passed; show=$([ "$BLESS" = 1 ] && cat "$WORK/report") ;;
	77) verdict=skipped; name="$name: $(tail -n 1 "$WORK/report")"; show= ;;
	124) verdict=failed; show="ran longer than $TIME_LIMIT_S s" ;;
	*) verdict=failed; show=$(tail -n 80 "$WORK/report"; [ $code -le 1 ] || echo "exit code $code") ;;
	esac
	printf '%-7s %s\n%s' "$verdict" "$name" "${show:+$show
}"
	echo "$verdict" > "$WORK.verdict"
}

if [ "${1-}" = --one ]; then
	run_one "$2"
	exit 0
fi

GPU=0
BLESS=0
while :; do
	case ${1-} in
	--gpu) GPU=1 ;;
	--bless) BLESS=1 ;;
	*) break ;;
	esac
	shift
done
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT
trap 'exit 130' INT TERM
export BLESS RESULTS

# The slowest kinds first, so that both jobs end together; prints one path a line.
find_cases() {
	[ "$BLESS" = 1 ] || for program in "$BUILD"/tests/*_test "$BUILD"/tests/*_fuzz; do
		[ -x "$program" ] && echo "$program"
	done
	find "$ROOT/tests" -name '*.cmd' ! -path '*/gpu/*' | sort
	[ "$GPU" = 0 ] || find "$ROOT/tests/gpu" -name '*.sh' -o -name '*.cmd' | sort
}

[ $# = 0 ] && set -- /
for word in "$@"; do find_cases | grep -F -e "$word"; done | awk '!seen[$0]++' > "$RESULTS/cases"
tr '\n' '\0' < "$RESULTS/cases" | xargs -0 -r -n 1 -P "${JOBS:-2}" sh "$0" --one
count() { cat "$RESULTS"/*.verdict 2>/dev/null | grep -c "^$1\$"; }
passed=$(count passed)
failed=$(($(wc -l < "$RESULTS/cases") - passed - $(count skipped)))
skipped=$(count skipped)
if [ "$GPU" = 0 ] && [ "$BLESS" = 0 ]; then
	why="no NVIDIA GPU"
	[ ! -e /dev/nvidiactl ] || why="run by make check-gpu"
	for script in "$ROOT"/tests/gpu/*.sh "$ROOT"/tests/gpu/*.cmd; do
		[ -f "$script" ] || continue
		printf '%-7s %s: %s\n' skipped "${script#"$ROOT"/}" "$why"
		skipped=$((skipped + 1))
	done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
