. ./device.inc
profile --collect counters | grep -v machine
