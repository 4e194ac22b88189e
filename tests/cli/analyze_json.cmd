$TL analyze gemm.tl --no-db --json | sed "/\"properties\"/,/^  \\]/d"
