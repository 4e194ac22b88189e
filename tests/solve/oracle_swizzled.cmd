# Known answers under swizzles, and of a budget: a column of fp32 with stride 32 under Swizzle<5,0,5>; 8 rows of ldmatrix under the 128-byte swizzle of
# 64 elements, Swizzle<2,3,3> of 32 and Swizzle<1,3,3> of 16; 16-byte loads down a column, and with pairs of lanes on one address.
awk 'BEGIN {
	print "op,access_bytes,mask,offsets"
	row("ld32", 4, 32, 32, 4, 5, 0, 5)
	row("ldsm1", 16, 8, 64, 2, 3, 3, 3)
	row("ldsm1", 16, 8, 32, 2, 2, 3, 3)
	row("ldsm1", 16, 8, 16, 2, 1, 3, 3)
	row("ld128", 16, 32, 64, 2, 0, 0, 0)
	pairs()
}
function swizzled(e, b, m, s, from, to, i, bit) {
	for (i = 0; i < b; i++) {
		from = 2 ^ (m + s + i); to = 2 ^ (m + i)
		if (int(e / from) % 2) e += int(e / to) % 2 ? -to : to
	}
	return e
}
function row(op, bytes, lanes, width, size, b, m, s, l, text) {
	text = op "," bytes "," (lanes == 32 ? "ffffffff" : "000000ff") ","
	for (l = 0; l < 32; l++)
		text = text (l ? " " : "") (l < lanes ? swizzled(l * width, b, m, s) * size : 0)
	print text
}
function pairs(l, text) {
	text = "ld128,16,ffffffff,"
	for (l = 0; l < 32; l++)
		text = text (l ? " " : "") int(l / 2) * 16
	print text
}' > $TMP/in && $TL banks < $TMP/in
# Shared bytes of 128 x 256 x 64 float16 in 4 stages.
$TL analyze ../../examples/gemm_relu.tl --no-db --target sm_90a --set block_M=128 --set block_N=256 --set block_K=64 --set num_stages=4 \
	--json | grep -o '"shared_bytes": [0-9]*'
