# Each fix that is named makes all sizes agree: a matrix of another shape, or transpositions.
sizes() {
	echo "$*: $($TL analyze gemm_sizes.tl --no-db $(for word in "$@"; do echo "--set $word"; done) 2>&1 | grep -e error -e help | sed 's/.*error/error/' | tr '\n' ';')"
}
sizes
sizes "b=(32,128)" | tr -s ' '
sizes "a=(32,128)" "b=(32,128)"
sizes "a=(32,128)" "b=(128,32)"
sizes "a=(128,32)" "b=(128,32)" ta=True
sizes "b=(32,128)" "c=(64,128)"
sizes "a=(32,64)" "b=(32,128)" "c=(64,64)" ta=True
sizes "a=(128,64)" "b=(32,48)" "c=(16,16)"
