"$TL" run dynamic.tl --check --size N=100 --size s=2.5
