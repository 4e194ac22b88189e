sh shows.inc either
