sh check.inc column_sum
