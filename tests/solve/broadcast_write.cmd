$TL analyze broadcast.tl --no-db --set write=True
