$TL analyze shapes.tl --no-db --json
