$TL emit opaque.tl --stage=tile
