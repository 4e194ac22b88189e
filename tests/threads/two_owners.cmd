$TL analyze two_owners.tl --no-db
