sh check.inc gemm_autotune; $TL kernels $ROOT/examples/gemm_autotune.tl --config 3 --json
