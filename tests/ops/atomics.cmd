$TL emit all.tl --kernel atomics --stage=tile
