sh shows.inc group_reduce
