sh shows.inc triangle
