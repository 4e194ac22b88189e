"$TL" run "$ROOT/examples/gemm_relu.tl" --check --tol 0 --set M=64 --set N=64 --set K=64 --json > "$TMP/run.json"
code=$?
grep -E '"(runs_on|blocks|blocks_run|checked|tolerance|ok|compared|stray|code)"' "$TMP/run.json"
exit $code
