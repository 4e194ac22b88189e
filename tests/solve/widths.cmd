# One line a setting: solved, simulated, compared.
check() {
	$TL run widths.tl --sim --check --kernel "$@" > $TMP/out 2>&1 && echo "$* ok" || { echo "$*"; cat $TMP/out; }
}
for n in 128 192 229 256 257 384; do check elementwise.main --set N=$n; done
for n in 64 96 100 120 127 128; do check row_sum.main --set N=$n; done
check row_sum.main --set N=48 --set threads=64
check two_loops.main
check two_loops.main --set m=256
for n in 768 1536 2560; do check two_rows.main --set N=$n; done
for stages in 0 1 2 3; do check late_copy.main --set stages=$stages; done
for threads in 32 96 128 256; do check one_row.main --set threads=$threads; done
