$TL analyze annotate.tl --no-db --set layout=collide
