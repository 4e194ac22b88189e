# The number that a kernel computes, and that the reference computes: equal elements, the first of them is shown.
answer() {
	$TL run answers.tl --sim --check --json --kernel "$@" > $TMP/out || { echo "$*: exit $?"; cat $TMP/out; }
	echo "$*:$(grep -e '"name": "\(Y\|Out\|y\|B\)"' -A 12 $TMP/out | grep -e '"worst"' -e '"got"' -e '"want"' | tr -d '",\n' | tr -s ' ')"
}
for n in 48 33 64 100 1000; do answer triangle.main --set N=$n; done
for stages in 0 1 2 3; do answer overwrite.main --set stages=$stages; done
for stages in 0 1 2 3; do answer overwrite.main --set stages=$stages --set copy_first=True; done
for block in 48 64 24; do answer gemv.main --set block_N=$block; done
answer gemv.main --set dtype=float32
answer gemv.main --set threads=96
answer eight.main
