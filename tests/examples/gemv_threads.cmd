sh check.inc gemv_threads
