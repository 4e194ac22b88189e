$TL ops T.gemm; $TL ops cumsum; $TL ops T.set_max_nreg; $TL ops T.alloc_tmem; $TL ops T.no_such
