$TL run many_elements.tl --set M=16 --set N=8 --set threads=32 --sim --check && $TL emit many_elements.tl --set M=16 --set N=8 --set threads=32 --stage=solution | grep -A 3 convert
