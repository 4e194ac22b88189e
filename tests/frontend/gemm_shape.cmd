$TL emit gemm_shape.tl --stage=tile
