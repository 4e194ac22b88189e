"$TL" run "$ROOT/examples/rms_norm.tl" --set M=8
