# What is proved of TileLang's code on the model, and what is not modelled.
"$TL" analyze store.tl --parity tilelang --no-db | sed -n '/^Properties/,$p'
