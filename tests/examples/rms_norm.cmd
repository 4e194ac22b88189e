sh check.inc rms_norm
