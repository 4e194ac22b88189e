"$TL" report 1 2 --db "$TMP/absent.db"
code=$?
[ ! -e "$TMP/absent.db" ] || echo "a database was made"
exit $code
