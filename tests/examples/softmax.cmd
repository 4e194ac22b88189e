sh check.inc softmax
