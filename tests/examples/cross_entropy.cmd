sh check.inc cross_entropy
