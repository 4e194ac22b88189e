$TL run rows.tl --sim --check --set threads=48 --set block_M=1
