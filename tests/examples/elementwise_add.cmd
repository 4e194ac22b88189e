sh check.inc elementwise_add --set M=65 --set N=200
