#!/bin/sh
# From a bare Debian to an analysed kernel: installs what is missing, builds, analyses an example with
# drawings in out/, and runs it in the simulator against the reference.
set -eu
cd "$(dirname "$0")/.."
. scripts/setup.sh

need_tools
make -s -j2
TL=build/tilelayout
kernel=${1:-examples/gemm_relu.tl}

echo
echo "\$ tilelayout analyze $kernel --out out"
"$TL" analyze "$kernel" --out out
echo
echo "\$ tilelayout run $kernel --sim --check"
"$TL" run "$kernel" --sim --check
echo
echo "drawings:"
ls out/*.svg 2> /dev/null | sed 's/^/  /'
say_what_is_skipped
