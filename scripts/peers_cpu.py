#!/usr/bin/env python3
"""Times PyTorch's scaled dot product attention on the CPU at the shapes of chapter 3, and writes the same
JSON shape as the programs: what the course is to be compared with, on the same machine.

It times as ch03_blocked_attention does, by thread counts, and keeps the fastest run; scripts/peers.py times as
ch06_benchmark does, with all threads, and keeps the median of repetitions. The figures of the two are not to be
put into one table.

usage: peers_cpu.py [--json FILE] [--lengths 512,1024,4096] [--threads 1,2] [--dtype fp32|bf16|fp16] …
Needs PyTorch; without it the script says so and ends with exit status 1.

Each backend runs once to warm up, then at least 3 times and for at least half a second. Beside it stands
PyTorch's own matrix product of 2048 x 2048.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import sys
import time

from flags import Flags, several, whole


def arguments():
    parser = Flags(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file")
    parser.add_argument("--lengths", type=several(whole(1, 2**24)), default=[512, 1024, 4096])
    parser.add_argument("--threads", type=several(whole(1, 1024)), default=None, help="default: 1 and all")
    parser.add_argument("--batch", type=whole(1, 2**20), default=1)
    parser.add_argument("--heads", type=whole(1, 2**20), default=12)
    parser.add_argument("--dim", type=whole(1, 4096), default=64)
    parser.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--full", action="store_true", help="without the causal mask")
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=1)
    return parser.parse_args()


def time_runs(work, min_runs=3, min_seconds=0.5):
    """Seconds of each run after a warm-up, sorted."""
    work()
    seconds, begin = [], time.perf_counter()
    while len(seconds) < min_runs or time.perf_counter() - begin < min_seconds:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def write_atomically(path, text):
    """All of the file or nothing of it, also if the script is interrupted."""
    temporary = path.with_name(path.name + f".{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def main():
    options = arguments()
    if options.json and not options.json.parent.is_dir():  # not after minutes of measuring
        sys.exit(f"peers_cpu.py: {options.json.parent}: no such folder")
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention
    except ImportError as error:
        sys.exit(f"peers_cpu.py: PyTorch 2.3 or later is needed: {error}")

    torch.manual_seed(options.seed)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[options.dtype]
    backends = {"torch_math": SDPBackend.MATH, "torch_flash": SDPBackend.FLASH_ATTENTION}
    rows, products = [], []
    print(f"{'N':>6}  {'threads':>7}  {'implementation':14}  {'ms':>9}  {'GFLOP/s':>8}")
    for threads in options.threads or sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
        rate = 2 * 2048**3 / time_runs(lambda: a @ b)[0]
        products.append({"threads": threads, "product_gflops": rate * 1e-9})
        print(f"{2048:6}  {threads:7}  {'matrix product':14}  {'':9}  {rate * 1e-9:8.1f}")
        for length in options.lengths:
            shape = options.batch, options.heads, length, options.dim
            q, k, v = (torch.randn(shape, dtype=dtype) for _ in range(3))
            flops = 4 * options.batch * options.heads * length * length * options.dim
            if not options.full:
                flops /= 2
            for name, backend in backends.items():
                with sdpa_kernel(backend), torch.no_grad():
                    seconds = time_runs(
                        lambda: scaled_dot_product_attention(q, k, v, is_causal=not options.full))
                rows.append({
                    "implementation": name, "device": "cpu", "batch": options.batch,
                    "heads_q": options.heads, "heads_kv": options.heads, "len_q": length,
                    "len_kv": length, "head_dim": options.dim, "dtype": options.dtype,
                    "causal": not options.full, "direction": "forward", "threads": threads,
                    "status": "ok", "median_ms": statistics.median(seconds) * 1e3,
                    "min_ms": seconds[0] * 1e3, "runs": len(seconds),
                    "tflops": flops / seconds[0] * 1e-12, "product_share": flops / seconds[0] / rate})
                print(f"{length:6}  {threads:7}  {name:14}  {seconds[0] * 1e3:9.2f}  "
                      f"{flops / seconds[0] * 1e-9:8.1f}", flush=True)
    if options.json:
        context = {"program": "peers_cpu.py", "machine": processor(), "cores": os.cpu_count(),
                   "os": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
                   "torch": torch.__version__, "seed": options.seed, "products": products,
                   "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
        write_atomically(options.json, json.dumps({"context": context, "rows": rows, "checks": []},
                                                  indent=1) + "\n")


if __name__ == "__main__":
    main()
