$TL analyze score_cast.tl --no-db --why Q_tile
$TL analyze score_cast.tl --no-db --why acc_s
$TL analyze rows.tl --no-db --why total
$TL analyze score_cast.tl --no-db --why acc_s_cast --json | sed 's/"text": "[^"]*"/"text": ""/'
# What has no layout to choose, and what is not there.
$TL analyze ../../examples/attention_split.tl --no-db --why largest_sum
$TL analyze ../../examples/mla_decode.tl --no-db --why workspace
$TL analyze ../../examples/gemm_dynamic.tl --no-db --why A
$TL analyze rows.tl --no-db --why nothing 2>&1
# What a fragment follows, up to the gemm.
$TL analyze ../../examples/attention.tl --no-db --why rescale
