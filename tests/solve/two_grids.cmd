$TL analyze two_grids.tl --no-db
