# Views in TileLang's layouts: the same bytes; refused where an element is torn. T.any_of and T.all_of scan addresses there.
views=../solve/views.tl
$TL layout $views --kernel annotated.main --set unit=8 --buffer x --parity tilelang > $TMP/x.csv
$TL layout $views --kernel annotated.main --set unit=8 --buffer seen --parity tilelang > $TMP/seen.csv
awk -F, 'FNR == 1 { next } NR == FNR { at[n++] = $3; next } { bad += at[2 * m] != $3 || at[2 * m + 1] != $3 + 2; m++ } END { print m, "elements,", bad + 0, "elsewhere" }' $TMP/x.csv $TMP/seen.csv
$TL analyze $views --no-db --kernel annotated.main --set unit=1 --parity tilelang
$TL analyze ../solve/any_of.tl --no-db --kernel rows.main --parity tilelang | grep -A1 "  owner"
$TL analyze ../solve/any_of.tl --no-db --kernel masked.main --set where=shared --parity tilelang | grep -A1 "  owner"
