sh check.inc stencil
