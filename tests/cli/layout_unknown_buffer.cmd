$TL layout gemm.tl --buffer C_locale
