$TL analyze neighbour.tl --no-db
