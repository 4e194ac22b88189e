$TL emit gemm.tl --stage=cuda -o $TMP/x.cu && $TL emit gemm.tl | cmp - $TMP/x.cu && $TL emit gemm.tl --stage=cuda --json | head -n 4
