sh check.inc linear_attention
