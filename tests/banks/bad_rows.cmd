# Bad rows are reported by line, nothing is printed.
"$TL" banks <<'ROWS'
op,access_bytes,mask,offsets
ld32,4,ffffffff,0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60 64 68 72 76 80 84 88 92 96 100 104 108 112 116 120 124
ld48,6,ffffffff,0
ld32,4,fff,0
ld32,4,ffffffff,0 4 8
st64,8,00000001,4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
atom32
ROWS
