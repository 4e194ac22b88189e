. ./device.inc
FAKE_CUDA=fault $TL bench norm.tl --no-db
