$TL explain E9999
