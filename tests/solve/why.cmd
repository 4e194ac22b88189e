$TL analyze score_cast.tl --no-db --why Q_tile
$TL analyze score_cast.tl --no-db --why acc_s
$TL analyze rows.tl --no-db --why total
$TL analyze score_cast.tl --no-db --why acc_s_cast --json | sed 's/"text": "[^"]*"/"text": ""/'
