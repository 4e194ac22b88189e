$TL emit no_launch.tl --kernel scan --stage=tile && $TL kernels no_launch.tl --kernel scan
$TL kernels no_launch.tl --kernel scan --json | grep launches
$TL emit no_launch.tl --kernel both --stage=tile
