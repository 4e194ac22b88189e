. ./device.inc
$TL bench norm.tl --no-db | sed "s/NVRTC [0-9.]*/NVRTC V/"
