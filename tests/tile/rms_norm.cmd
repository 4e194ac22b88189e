$TL emit $ROOT/examples/rms_norm.tl --stage=tile
