$TL kernels autotune.tl --set M=128 --config 2 && $TL kernels autotune.tl --set M=128 --config 1 --set threads=32 --json; $TL kernels autotune.tl --set M=128 --config 4
