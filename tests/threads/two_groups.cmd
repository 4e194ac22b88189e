sh shows.inc two_groups
