# The stages that TileLang's choices have, and what is said of the others.
"$TL" emit store.tl --stage=solution --parity tilelang --target sm_80
"$TL" emit store.tl --stage=schedule --parity tilelang --target sm_80
for stage in warp cuda ptx cubin; do
	"$TL" emit store.tl --stage=$stage --parity tilelang
	echo "$stage: exit code $?"
done 2>&1
