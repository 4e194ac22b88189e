$TL run inner.tl --sim --check && $TL run inner.tl --set H=3 --set N=229 --sim --check && $TL emit inner.tl --stage=solution | grep -A 1 "fragment [a-z]"
