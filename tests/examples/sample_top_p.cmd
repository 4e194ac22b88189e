sh check.inc sample_top_p
