$TL kernels two.tl; $TL kernels two.tl --json | sed -n "/\"name\": \"bad\"/,\$p"
