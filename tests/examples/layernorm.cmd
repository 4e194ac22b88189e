sh check.inc layernorm
