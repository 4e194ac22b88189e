command -v python3 > /dev/null || { echo "no python3"; exit 77; }
$TL doctor 2>&1 | grep -qi "graphviz.*not built" && { echo "built without Graphviz"; exit 77; }
$TL analyze ../cli/gemm.tl --no-db --out $TMP/d > /dev/null && python3 boxes.py $TMP/d/graph.svg
