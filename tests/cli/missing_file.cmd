$TL analyze no_such_file.tl
