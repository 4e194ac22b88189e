sh shows.inc overwrite
