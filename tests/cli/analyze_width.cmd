$TL analyze gemm.tl --no-db | awk "length(\$0) > 100 { n++ } END { print n + 0, \"lines are too long\" }"
