$TL analyze --list-passes --json
