$TL analyze all.tl --no-db --kernel layouts; $TL analyze all.tl --no-db --kernel atomics; $TL analyze all.tl --no-db --kernel barriers
