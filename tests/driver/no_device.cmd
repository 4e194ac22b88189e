. ./device.inc
FAKE_CUDA=no_device $TL run norm.tl --gpu --check
