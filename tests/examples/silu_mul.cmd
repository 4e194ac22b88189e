sh check.inc silu_mul
