# Host code that asks for the card is told of the target's, or of the one that --host-device names.
for words in "--target sm_80" "--target sm_90a" "--target sm_90a --host-device sm_80"; do
	echo "$words: $("$TL" analyze host_device.tl --no-db $words | grep launch)"
done
"$TL" analyze host_device.tl --no-db --host-device sm_91
