. ./device.inc
profile --db "$TMP/x.db" && "$TL" db list --db "$TMP/x.db" | grep -c profile
