# Two gemms, different splits: the scores are converted through shared memory on their way.
$TL run score_cast.tl --sim --check && $TL emit score_cast.tl --stage=solution | grep -A 4 convert
