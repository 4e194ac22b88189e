$TL run column_sum.tl --sim --check && $TL analyze column_sum.tl --no-db --json | grep -c "\"status\": \"violated\""; test $? = 1
