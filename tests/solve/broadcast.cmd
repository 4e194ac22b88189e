$TL run broadcast.tl --sim --check && $TL layout broadcast.tl --buffer a | sed -n "1,20p"
