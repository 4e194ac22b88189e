$TL run scalars.tl --sim --check && $TL run scalars.tl --set M=3 --set N=96 --set threads=96 --sim --check && $TL emit scalars.tl --stage=solution | grep -A 1 "fragment [a-z]"
