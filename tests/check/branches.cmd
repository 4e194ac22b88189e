# A barrier that may not happen orders nothing behind its branch; branches that exclude each other do not race.
show() { $TL analyze branches.tl --no-db "$@" | sed -n '/happens-before/,/bounds/p;/^  termination/,$p' | sed '/^  bounds/d;/^$/,$d'; }
for kernel in barrier "barrier --set both=True" exclusive filled; do show --kernel $kernel; done
