# Every measured access pattern against the model: rows exact, within LO..HI, wrong. The counts of cp.async in
# these files are not those of the hardware (docs/banks.md).
for file in bank_wavefronts_h200 bank_wavefronts_h200_2; do
	gzip -dc "$ROOT/tests/data/$file.csv.gz" > "$TMP/rows" || exit 1
	awk -F, -v OFS=, '{ print $1, $2, $4, $7 }' "$TMP/rows" > "$TMP/in"
	"$TL" banks < "$TMP/in" > "$TMP/got" || exit $?
	paste -d, "$TMP/rows" "$TMP/got" | awk -F, -v file="$file" '
		NR == 1 || $1 ~ /^cpasync/ { next }
		{
			op = $1 ($1 == "ld128" && $4 != "ffffffff" ? " (partial mask)" : "")
			rows[op]++
			n = split($9, bounds, /\.\./)
			if (n == 1 && $9 == $5 && $10 == $6) exact[op]++
			else if (n == 2 && bounds[1] <= $5 && $5 <= bounds[2]) within[op]++
			else wrong[op]++
		}
		END {
			for (op in rows)
				printf "%s %s: %d rows, %d exact, %d within, %d wrong\n", file, op, rows[op], exact[op], within[op], wrong[op]
		}' | sort
done
