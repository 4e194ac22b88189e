# Warpgroup instructions: legal tiles of every kind are solved, checked and simulated; every element of the
# accumulator of two warpgroups over four blocks of 64 rows lies where the instruction leaves it, here (first as
# the PTX ISA's figure has it, then as TileLang's rule places it).
sets() { for word in "$@"; do echo "--set $word"; done; }
try() {
	echo "== $*"
	$TL analyze wgmma.tl --no-db --target sm_90a $(sets "$@") | grep -E '^  (shared memory|properties)|with |warps of' &&
	$TL run wgmma.tl --target sm_90a $(sets "$@") --sim --check > $TMP/run || cat $TMP/run
}
try M=256 N=128 K=64 block_M=256 block_N=128 block_K=32 threads=256
two="--set M=256 --set N=128 --set K=64 --set block_M=256 --set block_N=128 --set block_K=32 --set threads=256"
$TL layout wgmma.tl --target sm_90a $two --buffer C_local > $TMP/ours
awk -F, 'NR > 1 { i = $1; j = $2; in_group = i % 128; thread = int(i / 128) * 128 + int(in_group % 64 / 16) * 32 + i % 8 * 4 + int(j % 8 / 2)
	slot = int(in_group / 64) * 64 + int(j / 8) * 4 + int(i % 16 / 8) * 2 + j % 2
	n++; middle += i >= 64 && i < 192; if ($4 != thread || $5 != slot) bad++ }
	END { printf "%d elements, %d in rows 64 to 191, %d elsewhere than the figure\n", n, middle, bad }' $TMP/ours
$TL layout wgmma.tl --target sm_90a $two --buffer C_local --parity tilelang > $TMP/theirs
cmp $TMP/ours $TMP/theirs && echo "the two maps agree"
try M=128 N=128 K=64 block_M=128 block_N=128 block_K=32 threads=128
try M=128 N=256 K=64 block_M=128 block_N=256 block_K=32 threads=512
try M=256 N=16 K=64 block_M=256 block_N=16 block_K=32 threads=512 square=True trans_B=True
# Narrow columns, by what a warpgroup has of them.
try M=128 N=24 K=128 block_M=128 block_N=24 block_K=64 threads=128 square=True
try M=128 N=48 K=128 block_M=128 block_N=48 block_K=64 threads=256 square=True
try M=128 N=48 K=128 block_M=128 block_N=48 block_K=64 threads=128 square=True
# More columns than an instruction has: several; K of one step; types without an instruction for this order.
try M=64 N=320 K=32 block_M=64 block_N=320 block_K=16 threads=128
try M=64 N=64 K=64 block_M=64 block_N=64 block_K=32 threads=128 dtype=bfloat16 trans_B=True
# With four stages the product of an iteration goes on during the next, and copies run two ahead.
try M=128 N=64 K=224 block_M=128 block_N=64 block_K=32 threads=128 stages=4
$TL emit wgmma.tl --target sm_90a $(sets M=128 N=64 K=224 block_M=128 block_N=64 block_K=32 threads=128 stages=4) --stage=warp | grep wait
$TL emit wgmma.tl --target sm_90a $(sets M=128 N=64 K=224 block_M=128 block_N=64 block_K=32 threads=128 stages=4) --stage=schedule | grep stage
