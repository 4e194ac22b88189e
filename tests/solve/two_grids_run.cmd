$TL run two_grids.tl --sim --check && $TL emit two_grids.tl --stage=solution | grep -A 3 convert
