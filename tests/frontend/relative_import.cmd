"$TL" kernels relative_import.tl
