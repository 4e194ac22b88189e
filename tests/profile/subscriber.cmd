. ./device.inc
FAKE_CUPTI=subscriber profile --no-db | head -n 1
