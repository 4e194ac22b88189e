$TL emit $ROOT/examples/gemm_relu.tl --stage=tile
