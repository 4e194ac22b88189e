. ./device.inc
FAKE_CUPTI=old_chip profile --no-db | grep dram
