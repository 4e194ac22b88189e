$TL emit parameters.tl --stage=tile
