sh shows.inc copy_then_some
