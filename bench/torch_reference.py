"""Times PyTorch's own kernels (cuBLAS and fused norms) on the same card, as `tilelayout bench` does: events, medians, cold L2.

usage: torch_reference.py gemm_relu M N K | rms_norm ROWS COLUMNS [float16|float32]
Prints one JSON object a line.
"""
import json
import statistics
import sys

try:
    import torch
except ImportError:
    print(json.dumps({"skipped": "no torch"}))
    sys.exit(77)
if not torch.cuda.is_available():
    print(json.dumps({"skipped": "torch sees no GPU"}))
    sys.exit(77)


def median_us(run, bytes_moved, repeats=50):
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(2 * l2_bytes, dtype=torch.uint8, device="cuda") if bytes_moved <= 4 * l2_bytes else None
    for _ in range(5):
        run()
    times = []
    for _ in range(repeats):
        if flush is not None:
            flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def gemm_relu(m, n, k):
    a = torch.rand(m, k, device="cuda", dtype=torch.float16) * 2 - 1
    b = torch.rand(k, n, device="cuda", dtype=torch.float16) * 2 - 1
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)

    def product():
        torch.matmul(a, b, out=c)

    def both():
        torch.matmul(a, b, out=c)
        torch.relu_(c)

    bytes_moved = 2 * (m * k + k * n + m * n)
    flops = 2.0 * m * n * k
    for name, run in (("cublas", product), ("cublas+relu", both)):
        time = median_us(run, bytes_moved)
        print(json.dumps({"what": name, "m": m, "n": n, "k": k, "median_us": time, "tflops": flops / time * 1e-6}))


def rms_norm(rows, columns, dtype):
    x = torch.rand(rows, columns, device="cuda", dtype=dtype) * 2 - 1
    w = torch.rand(columns, device="cuda", dtype=dtype)
    bytes_moved = 2 * x.numel() * x.element_size()
    time = median_us(lambda: torch.nn.functional.rms_norm(x, (columns,), w), bytes_moved)
    print(json.dumps({"what": "torch rms_norm", "rows": rows, "columns": columns, "dtype": str(dtype), "median_us": time,
                      "gbytes_s": bytes_moved / time * 1e-3}))


if sys.argv[1:2] == ["gemm_relu"] and len(sys.argv) == 5:
    gemm_relu(*map(int, sys.argv[2:5]))
elif sys.argv[1:2] == ["rms_norm"] and len(sys.argv) in (4, 5):
    rms_norm(int(sys.argv[2]), int(sys.argv[3]), getattr(torch, sys.argv[4] if len(sys.argv) == 5 else "float32"))
else:
    sys.exit(__doc__)
