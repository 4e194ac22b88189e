sh check.inc conv2d_im2col
odd="--set N=1 --set H=11 --set W=9 --set K=24 --set stride=2 --set dilation=2 --set padding=2"
STEPS="analyze run" sh check.inc conv2d_im2col $odd --set C=8 --set block_K=24
STEPS="analyze run" sh check.inc conv2d_im2col $odd --set C=3 --set block_K=10
