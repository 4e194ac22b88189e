$TL analyze --help; $TL help layout
