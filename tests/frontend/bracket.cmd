$TL emit bracket.tl --stage=tile
