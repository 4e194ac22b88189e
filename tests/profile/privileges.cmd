# Timing still works, so the refusals are warnings.
. ./device.inc
FAKE_CUPTI=privileges profile --no-db | head -n 3
