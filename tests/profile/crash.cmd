# A measuring process that dies costs its own figures only.
. ./device.inc
FAKE_CUPTI=crash profile --no-db
