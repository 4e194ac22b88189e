"$TL" run dynamic.tl --check --size N=100
