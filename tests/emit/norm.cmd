$TL emit norm.tl
