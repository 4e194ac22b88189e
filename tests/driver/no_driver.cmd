[ -e /dev/nvidiactl ] && { echo "there is a driver"; exit 77; }
$TL bench norm.tl --no-db 2> $TMP/err; code=$?; head -n 1 $TMP/err; exit $code
