$TL analyze accumulator.tl --strict --no-db > /dev/null
