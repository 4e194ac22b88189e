$TL emit all.tl --kernel layouts --stage=tile
