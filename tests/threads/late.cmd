sh shows.inc late
