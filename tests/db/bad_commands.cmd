export TILELAYOUT_DB="$TMP/t.db"
"$TL" analyze gather.tl > "$TMP/out"
for command in frob "show" "show 9" "tag 1 latest" "tag 1 12" "tag 1 a/b" "list x"; do
	"$TL" db $command
	echo "$command: $?"
done
