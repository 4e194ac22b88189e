# What a row shares is loaded once for a vector's eight places; what a column has, with the vector.
$TL emit one_element.tl --stage=warp | grep ' ld '
$TL analyze one_element.tl --no-db | grep 'ld.shared'
$TL run one_element.tl --sim --check
# The last rows are outside.
$TL run one_element.tl --sim --check --set M=60
