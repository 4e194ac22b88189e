# Access patterns with known answers: op, bytes between rows, then wavefronts and ideal. The lane's offset is that of column reads, of
# ldmatrix rows, or of an mma accumulator's stores.
awk 'BEGIN {
	print "op,access_bytes,mask,offsets"
	n = split("64 128 256 132", columns); for (i = 1; i <= n; i++) row("ld32", 4, 32, columns[i], 0)
	n = split("32 64 128 256 384 512 96 160 192 144 208", rows); for (i = 1; i <= n; i++) row("ldsm1", 16, 8, rows[i], 0)
	n = split("128 256 272", halves); for (i = 1; i <= n; i++) row("st32", 4, 32, halves[i], 4)
	n = split("256 512 528 544", floats); for (i = 1; i <= n; i++) row("st64", 8, 32, floats[i], 8)
	row("st128", 16, 32, 64, 16)
}
function row(op, bytes, lanes, pitch, step, l, text) {
	text = op "," bytes "," (lanes == 32 ? "ffffffff" : "000000ff") ","
	for (l = 0; l < 32; l++)
		text = text (l ? " " : "") (l < lanes ? (step ? int(l / 4) * pitch + l % 4 * step : l * pitch) : 0)
	print text
}' > $TMP/in && $TL banks < $TMP/in
