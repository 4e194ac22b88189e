. ./device.inc
$TL bench norm.tl --db $TMP/x.db > /dev/null && $TL db list --db $TMP/x.db | tail -n 1 | grep -c bench
