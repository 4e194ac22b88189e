# A missing wait, arrival or parity is found both in the properties and by the simulator.
for fault in none "no free" "no wait" "no arrival" parity early elected; do
	echo "== $fault"
	COLUMNS=250 $TL analyze faults.tl --target sm_90a --no-db --set "fault='$fault'" > $TMP/out 2> $TMP/err
	echo "analyze $?"
	grep -e '^  happens-before' -e '^  termination' $TMP/out
	$TL run faults.tl --target sm_90a --sim --check --set "fault='$fault'" > $TMP/out 2> $TMP/err
	echo "run $?"
	grep -e error $TMP/err
	grep -e 'largest error' $TMP/out | sed 's/largest error.*: /: /'
done
