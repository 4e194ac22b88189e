. ./device.inc
FAKE_CUDA=memory $TL bench norm.tl --no-db
