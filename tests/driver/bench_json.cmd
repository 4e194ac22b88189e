. ./device.inc
$TL bench norm.tl --no-db --json --repeats 3 | grep -v -e nvrtc
