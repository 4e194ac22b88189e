. ./device.inc
profile --no-db --json | grep -v -e nvrtc -e version -e driver
