# Predictions are printed, then why nothing was measured; nothing is stored.
[ ! -e /dev/nvidiactl ] || { echo "there is a driver"; exit 77; }
"$TL" profile ../driver/norm.tl 2> "$TMP/err"
code=$?
head -n 1 "$TMP/err"
[ ! -e "$TILELAYOUT_DB" ] || echo "a database was made"
exit $code
