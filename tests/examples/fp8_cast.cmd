sh check.inc fp8_cast
