$TL analyze - --no-db --stop-after tile < gemm.tl
