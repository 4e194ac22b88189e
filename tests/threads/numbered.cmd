sh shows.inc numbered
