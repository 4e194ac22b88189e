$TL emit rows.tl --stage=solution --set N=229
