$TL emit syntax.tl --stage=tile
