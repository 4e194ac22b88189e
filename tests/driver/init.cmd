. ./device.inc
FAKE_CUDA=init $TL run norm.tl --gpu --check
