. ./device.inc
$TL bench norm.tl --no-db --device 3; echo $?; $TL bench norm.tl --no-db --device -1
