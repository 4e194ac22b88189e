"$TL" run blocks_collide.tl --check
