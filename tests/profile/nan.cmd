. ./device.inc
FAKE_CUPTI=nan profile --db "$TMP/x.db" | grep "not a number" && "$TL" db show 1 --db "$TMP/x.db" | grep -c "not a number"
