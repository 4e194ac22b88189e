$TL emit all.tl --kernel barriers --stage=tile
