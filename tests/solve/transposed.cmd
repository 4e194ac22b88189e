for ta in True False; do for tb in True False; do
	echo "transpose_A $ta transpose_B $tb"
	$TL run transposed.tl --sim --check --set ta=$ta --set tb=$tb > $TMP/out 2>&1 || cat $TMP/out
	$TL emit transposed.tl --stage=solution --set ta=$ta --set tb=$tb | grep -e "^	shared" -e candidate
done; done
