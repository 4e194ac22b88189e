# K=20 is a step of 16 and a rest of 4, in rows of 40 bytes that ldmatrix cannot read.
$TL run gemm.tl --sim --check --set block_K=20 --set K=60 | tail -n 1
$TL analyze gemm.tl --no-db --set block_K=20 --set K=60 | grep -e "_shared  " -e "last k step" -e "properties  "
