# Who leaves what in an element of a tensor: blocks are not ordered, threads by barriers only.
show() { $TL analyze writes.tl --no-db "$@" | sed -n '/happens-before/,/bounds/p' | sed '$d'; }
show --kernel blocks
show --kernel blocks --set step=64
show --kernel blocks --set step=0
show --kernel blocks --set step=0 --set alike=True
show --kernel digits
show --kernel digits --set keep=2
show --kernel statements
show --kernel statements --set barrier=True
show --kernel iterations
show --kernel iterations --set alike=True
show --kernel data
