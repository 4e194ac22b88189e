sh check.inc attention_window
