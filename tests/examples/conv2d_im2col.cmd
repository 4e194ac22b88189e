sh check.inc conv2d_im2col --target sm_90a
