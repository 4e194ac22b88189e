# The consumer may read what cp.async brought once the copies have reported; it fences for warpgroup instructions itself.
$TL emit reports.tl --target sm_90a --stage=warp | grep -A4 -e mbarrier.wait -e mbarrier.copies | cut -c1-110
COLUMNS=200 $TL analyze reports.tl --target sm_90a --no-db | grep -e '^  properties' -e '^  happens' -e '^  termination'
$TL run reports.tl --target sm_90a --sim --check | sed 's/largest error.*: /: /'
