sh check.inc embedding
