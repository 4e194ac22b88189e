$TL analyze ../cli
