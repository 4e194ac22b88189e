$TL emit all.tl --kernel reducers --stage=tile
