# The loop's layout comes from acc_s: refused with --strict, with the first element, both owners and how many differ; the two
# other forms hold with --strict; all three compute the same.
$TL analyze scores.tl --no-db --strict 2>&1 | grep -v "^ *[0-9]* |\|^ *|"
for how in swapped shared; do
	echo "$how: $($TL analyze scores.tl --no-db --strict --set how=$how | grep "properties " | tr -s ' ')"
done
for how in registers swapped shared; do
	echo "$how: $($TL run scores.tl --sim --check --set how=$how | tail -n 1 | sed 's/.*: //')"
done
$TL layout scores.tl --buffer acc_s | awk -F, 'NR > 1 { i = $1; j = $2
	thread = int(j / 64) * 128 + int(i / 16) * 32 + i % 8 * 4 + int(j % 8 / 2); slot = int(j % 64 / 8) * 4 + int(i % 16 / 8) * 2 + j % 2
	to = int(j / 16) * 32 + j % 8 * 4 + int(i % 8 / 2); to_slot = int(i / 8) * 4 + int(j % 16 / 8) * 2 + i % 2
	bad += $4 != thread || $5 != slot; differ += thread != to || slot != to_slot; moves += thread != to }
	END { print bad + 0 " elsewhere than the accumulator of 4 x 2 warps; " differ " differ from 8 warps along j, " moves " in their thread" }'
