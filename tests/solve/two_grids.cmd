$TL analyze two_grids.tl --strict --no-db
