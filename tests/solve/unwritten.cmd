# Elements that nothing has written are told with the first one; what is written, or may be, is not.
for m in 100 256; do $TL analyze unwritten.tl --no-db --kernel read.main --set m=$m | sed -n '/happens-before/,/bounds/p'; done
$TL analyze unwritten.tl --no-db --kernel read.main --set fill=True | grep happens-before
$TL analyze unwritten.tl --no-db --kernel write.main | grep happens-before
$TL analyze unwritten.tl --no-db --kernel read.main > /dev/null
