command -v cc > $TMP/cc || { echo "no C compiler"; exit 77; }
$TL emit float8.tl --stage=cuda > $TMP/float8.cu || exit 1
sed -n '/^#if !(__CUDA/,/^#define/p' $TMP/float8.cu | grep -v '^#define' > $TMP/helpers.h
cc -O1 -ffp-contract=off -I$TMP -x c float8.c -o $TMP/float8 -lm && $TMP/float8
$TL run float8.tl --sim --check > $TMP/run && tail -1 $TMP/run | sed 's/largest.*: ok/ok/'
