$TL doctor | grep -q "^ *NVRTC *present" || { echo "no NVRTC"; exit 77; }
export XDG_CACHE_HOME=$TMP
for set in "M=256" "M=65" "N=67" "K=35" "K=2"; do
	$TL emit gemm.tl --stage=ptx --set $set > $TMP/x.ptx || exit 1
	echo "$set: $(grep -c mma.sync $TMP/x.ptx) mma.sync, $(grep -c 'ldmatrix' $TMP/x.ptx) ldmatrix, $(grep -c '\.local' $TMP/x.ptx) local"
	$TL emit gemm.tl --stage=cubin --set $set -o $TMP/x.cubin || exit 1
	head -c 4 $TMP/x.cubin | tail -c 3; echo
done
$TL emit norm.tl --stage=ptx --target sm_90a | grep -e '^.target' -e '\.local'
