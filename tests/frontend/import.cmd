$TL emit import/kernel.tl --stage=tile --import-root import && $TL kernels import/kernel.tl --import-root import/helpers 2>&1 | head -1; $TL emit import/kernel.tl --stage=tile
