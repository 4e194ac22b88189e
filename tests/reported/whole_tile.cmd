# 12 warps over 16 x 104 and 17 over 288 x 8 are refused on every target; what the message lists covers; a K of 20 does.
for target in sm_80 sm_90a; do
	$TL analyze whole_tile.tl --no-db --target $target
	$TL analyze whole_tile.tl --no-db --target $target --set policy=FullRow
	$TL analyze whole_tile.tl --no-db --target $target --set M=288 --set N=8 --set threads=544
done 2>&1 | grep -e error -e note -e help
check() {
	echo "$*: $($TL analyze whole_tile.tl --no-db "$@" | grep -e "warps of" -e "properties " | tr -s ' ' | tr '\n' ';')$($TL run whole_tile.tl --sim --check "$@" | sed -n 's/.*: //; $p')"
}
for threads in 32 416; do check --set threads=$threads; done
check --set N=96
for threads in 32 64 96 192 288 576; do check --set M=288 --set N=8 --set threads=$threads; done
check --set M=64 --set N=64 --set K=20 --set threads=128
