sh check.inc cumsum
