sh check.inc gqa_decode
