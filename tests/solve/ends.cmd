# A vector must not pass the end of the loop; copies to a tile that nothing reads are waited for at the end.
for rows in 6 7 8; do for t in 1 3 32; do $TL run ends.tl --kernel ends.main --set rows=$rows --set threads=$t --sim --check 2> /dev/null | tail -1; done; done
$TL analyze ends.tl --no-db --kernel unread.main | grep '^  properties'
$TL run ends.tl --kernel unread.main --sim --check
