. ./device.inc
FAKE_CUDA=launch $TL bench norm.tl --no-db
