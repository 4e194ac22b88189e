$TL emit torch_tail.py --stage=tile
