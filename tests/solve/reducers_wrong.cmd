# What may not be done with a reducer: each names both lines.
$TL analyze reducers.tl --no-db --kernel never.main
for how in read loop twice scale; do $TL analyze reducers.tl --no-db --kernel wrong.main --set how=$how; done
