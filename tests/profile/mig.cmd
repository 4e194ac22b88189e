. ./device.inc
FAKE_CUPTI=mig profile --no-db | head -n 1
