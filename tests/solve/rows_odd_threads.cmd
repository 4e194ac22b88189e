$TL emit rows.tl --stage=solution --set threads=48 --set block_M=1
