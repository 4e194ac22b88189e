sh check.inc transpose
