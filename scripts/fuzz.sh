#!/bin/sh
# sh scripts/fuzz.sh TARGETS SEEDS SECONDS: runs every libFuzzer program of folder TARGETS for SECONDS, starting from
# the seeds that the program of the same name in SEEDS lists.  Inputs that break something stay in build/fuzz/found.
set -eu
targets=$1 seeds=$2 seconds=$3
corpus=$(dirname "$targets")/corpus
found=$(dirname "$targets")/found
mkdir -p "$found"
for target in "$targets"/*_fuzz; do
	name=$(basename "$target")
	mkdir -p "$corpus/$name"
	"$seeds/$name" --list | while read -r seed; do
		cp "$seed" "$corpus/$name/$(echo "$seed" | tr / _)"
	done
	echo "== $name"
	"$target" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
		-artifact_prefix="$found/$name-" "$corpus/$name"
done
