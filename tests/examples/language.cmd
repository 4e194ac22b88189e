# The kernels that docs/language.md shows.
awk -v tmp=$TMP '/^```python/ { n++; inside = 1; next } /^```/ { inside = 0 } inside { print > (tmp "/" n ".tl") }' $ROOT/docs/language.md
cd $TMP
$TL emit 1.tl --stage=tile && $TL kernels 2.tl --set N=1000 && $TL kernels 2.tl --tensor A=500:float32 --tensor B=500:float32 && $TL run 3.tl --check | sed "s/largest error.*: ok/ok/"
