$TL emit names.tl --stage=tile
