sh check.inc attention_delta
