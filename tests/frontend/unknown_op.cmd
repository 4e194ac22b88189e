$TL emit unknown_op.tl --stage=tile
