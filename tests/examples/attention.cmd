sh check.inc attention
