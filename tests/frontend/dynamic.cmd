$TL emit dynamic.tl --stage=tile && $TL kernels dynamic.tl --json | grep -A5 '"grid"'
$TL emit dynamic.tl --stage=tile --assume 'M%8==0' --assume '64<=M<=4096' && $TL kernels dynamic.tl --set M=100
$TL emit dynamic.tl --stage=tile --assume 'M*2==8'; $TL emit dynamic.tl --stage=tile --assume 'K%8==0'
