# Which elements have a value when they are read: iterations, blocks, threads and data decide.
show() { $TL analyze unwritten.tl --no-db "$@" | sed -n '/happens-before/,/bounds/p' | sed '$d'; }
show --kernel iterations
show --kernel iterations --set shared=True
show --kernel iterations --set first=0
show --kernel halves
show --kernel blocks
show --kernel blocks --set last=8
show --kernel threads
show --kernel threads --set last=64
show --kernel data
show --kernel data --set inside=False
show --kernel data --set inside=False --set fill=True
$TL analyze unwritten.tl --no-db --kernel blocks > /dev/null
