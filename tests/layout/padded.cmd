# 229 elements, one row, 128 threads: no element is lost and none is placed twice.
$TL layout rows.tl --buffer X_local --set block_M=1 --set N=229 --set M=4 > $TMP/x.csv || exit 1
wc -l < $TMP/x.csv
tail -n +2 $TMP/x.csv | cut -d, -f4,5 | sort | uniq -d
