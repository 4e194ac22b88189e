$TL emit transpose.tl --stage=solution
$TL run transpose.tl --sim --check
