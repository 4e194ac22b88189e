$TL analyze conflicts.tl --no-db | sed "/^Targets/,\$d"
