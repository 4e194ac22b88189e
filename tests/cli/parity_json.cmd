$TL analyze gemm.tl --parity tilelang --no-db --json --target sm_90a | sed -n "/\"parity\"/p; /\"gemms\"/,/^  \\]/p"
