. ./device.inc
$TL doctor | grep -e "^ *driver" -e "^ *card" | sed "s|$TMP|TMP|"
