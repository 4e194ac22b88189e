sh check.inc conv2d
