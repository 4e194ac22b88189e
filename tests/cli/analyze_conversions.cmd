$TL analyze ../solve/accumulator.tl --no-db | grep -A 4 Conversions; $TL analyze ../solve/accumulator.tl --no-db --json | grep -A 26 conversions
