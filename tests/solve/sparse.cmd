for s in "" "--set dtype=float16 --set etype=int8 --set acc=float32 --set ta=True" \
	"--set dtype=float32 --set etype=int16 --set acc=float32 --set te=True --set tb=True" \
	"--set dtype=float16 --set acc=float32 --set te=True"; do
	$TL run sparse.tl --sim --check $s > $TMP/run 2> $TMP/err || exit 1
	tail -1 $TMP/run | sed 's/largest.*: ok/ok/'
done
cat $TMP/err
