$TL emit leave.tl --stage=tile --set where=both && $TL run leave.tl --set where=both --sim --check > $TMP/run && tail -1 $TMP/run
$TL kernels leave.tl --set where=parallel > $TMP/out
$TL kernels leave.tl --set where=host > $TMP/out
