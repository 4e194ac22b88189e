$TL kernels missing.tl; $TL kernels missing.tl --json; $TL analyze missing.tl --no-db
