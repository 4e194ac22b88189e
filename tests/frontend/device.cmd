$TL kernels device.tl && $TL kernels device.tl --target sm_90a
