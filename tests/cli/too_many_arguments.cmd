$TL plot a b --buffer A
