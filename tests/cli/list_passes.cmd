$TL analyze --list-passes
