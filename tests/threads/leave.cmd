sh shows.inc leave && sh shows.inc leave --set alike=False
