$TL analyze pointers.tl --no-db | sed -n '/^Shared-memory/,/^Pipeline/p'
