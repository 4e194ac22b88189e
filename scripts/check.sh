#!/bin/sh
# Installs what is missing, builds without warnings and runs the tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/setup.sh

FOR_TESTS=1 # some tests read their results with python3
need_tools
make -s -j2 WERROR=1
say_what_is_skipped
make -s -j2 check WERROR=1
