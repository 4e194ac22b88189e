sh shows.inc fill_at
