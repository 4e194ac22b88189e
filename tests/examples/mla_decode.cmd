sh check.inc mla_decode
