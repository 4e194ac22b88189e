$TL emit $ROOT/examples/elementwise_add.tl --stage=tile
