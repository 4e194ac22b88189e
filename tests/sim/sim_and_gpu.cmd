"$TL" run "$ROOT/examples/gemm_relu.tl" --sim --gpu
