sh shows.inc choice
