"$TL" run not_cleared.tl --check
