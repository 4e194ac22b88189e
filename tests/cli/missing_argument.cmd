$TL kernels
