# Producer and consumer at trip counts of 1 to stages + 1 and more, with partial tiles, against the tile program.
for options in K=64 K=128 K=192 K=256 K=448 "K=256 stages=3" "M=100 N=72" "block_K=32" "K=512 block_N=64 stages=4"; do
	sets=
	for o in $options; do sets="$sets --set $o"; done
	$TL run gemm_ws.tl --sim --check --target sm_90a $sets 2>&1 | sed -n "s|.*no race.*|$options: no race|p; s/largest error.*: /: /p"
	$TL analyze gemm_ws.tl --target sm_90a --no-db $sets 2>&1 | grep -c proved
done
