sh shows.inc guarded
