"$TL" profile ../driver/norm.tl --collect everything
