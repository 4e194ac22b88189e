sh shows.inc address
