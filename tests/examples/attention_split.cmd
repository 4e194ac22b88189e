sh check.inc attention_split
