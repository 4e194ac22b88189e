RUN="--size m=65 --size n=130 --size k=72" sh check.inc gemm_dynamic
