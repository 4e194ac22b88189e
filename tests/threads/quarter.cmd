sh shows.inc quarter
