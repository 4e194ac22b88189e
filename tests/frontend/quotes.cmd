$TL emit quotes.tl --stage=tile
