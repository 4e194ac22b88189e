$TL explain e0902
