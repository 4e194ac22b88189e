$TL analyze score_cast.tl --strict --no-db
