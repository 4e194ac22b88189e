$TL analyze two.tl --no-db; $TL analyze two.tl --no-db --kernel good --stop-after tile
