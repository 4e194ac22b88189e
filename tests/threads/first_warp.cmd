sh shows.inc first_warp
