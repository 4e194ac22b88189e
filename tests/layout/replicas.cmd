$TL layout rows.tl --buffer total --set block_M=2 --set N=64
