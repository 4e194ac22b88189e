sh check.inc topk
