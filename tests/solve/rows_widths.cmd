# Partition of the fragment, bytes a load and of shuffles, by width.
for n in 1 7 96 160 192 229 257 320 448 640 768 1000 4096; do
	for shared in True False; do
		echo "$n $shared: $($TL emit rows.tl --stage=solution --set N=$n --set shared=$shared | grep -e "bytes a thread" -e "shuffles" -e optimal | sed "s/ cost.*//" | tr "\n\t" "; ")"
	done
done
