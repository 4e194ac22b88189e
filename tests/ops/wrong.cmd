$TL emit wrong.tl --stage=tile
