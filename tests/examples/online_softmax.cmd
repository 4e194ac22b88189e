sh check.inc online_softmax
