. ./device.inc
$TL run norm.tl --gpu --check
