sh check.inc histogram
