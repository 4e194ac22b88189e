sh check.inc rope
