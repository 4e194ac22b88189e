"$TL" run dynamic.tl --check --size N=-3 --size s=1
