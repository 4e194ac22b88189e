sh check.inc gemv
