$TL analyze many_elements.tl --no-db > /dev/null
