"$TL" run blocks_collide.tl --json
