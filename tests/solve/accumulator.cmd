$TL run accumulator.tl --sim --check && $TL run accumulator.tl --set clears=True --set second=Square --sim --check && $TL emit accumulator.tl --stage=solution | grep -A 3 convert
