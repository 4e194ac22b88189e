$TL run parts.tl --sim --check && $TL run parts.tl --set n_parts=4 --sim --check && $TL emit parts.tl --stage=solution | grep -A 3 convert
