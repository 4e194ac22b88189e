$TL explain E0902 --json
