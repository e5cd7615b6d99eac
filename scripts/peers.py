#!/usr/bin/env python3
"""Times PyTorch's attention, and a Triton kernel, as ch06_benchmark times ours: the same shapes, the same
method, the same JSON.

On a GPU: scaled_dot_product_attention with each of its backends (math, FlashAttention-2, memory-efficient,
cuDNN), and a kernel in the style of Triton's tutorial if Triton is here. On a CPU: the same function with
its default and its math backend. Launches are recorded in a CUDA graph of about half a millisecond and
replayed (calls of more than 5 ms are launched one by one: there the host is always ahead); a repetition is the
mean over at least 10 ms of replays, and the figure is the median of the repetitions. Inputs are random; "cold"
takes turns among so many sets of them that none is left in L2.

usage: peers.py [--like RESULTS.json] [--json FILE] [flags; see --help]
        --like takes shapes and cache states from results of ch06_benchmark; otherwise flags give one shape
exit status: 0 if every row was timed, or refused for a stated reason, and is right; 1 otherwise, or if none was
        timed; 2 for wrong usage
"""
import datetime
import functools
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

from gpu_power import EnergyCounter, mean_power
from peers_flags import KEYS, parser, rows_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
REPLAY_SECONDS, REPETITION_SECONDS = 500e-6, 0.01
LONG_SECONDS = 5e-3  # a call that needs no graph
SPOT_ROWS = 14
NO_TIME = dict.fromkeys(["median_ms", "min_ms", "runs", "calls_per_run", "tflops", "bound_share", "scratch_bytes",
                         "peak_bytes", "max_error", "power_w"])


try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    MISSING = None
except ImportError as error:
    torch, MISSING = None, error
try:
    from peers_triton import triton_attention, triton_version
except ImportError:
    triton_attention, triton_version = None, None

TORCH_DTYPE = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def fail(message):
    print(f"peers.py: {message}", file=sys.stderr)
    sys.exit(1)


class Shape:
    """One problem, as the rows of ch06_benchmark describe it."""

    def __init__(self, row):
        self.__dict__.update({key: row[key] for key in KEYS})
        self.bound_ms = row.get("bound_ms")  # from the ceilings that ch06_benchmark measured

    def json(self):
        return {key: getattr(self, key) for key in KEYS[:-2]}

    def name(self, implementation):
        heads = f"H{self.heads_q}" if self.heads_q == self.heads_kv else f"H{self.heads_q}kv{self.heads_kv}"
        length = f"T{self.len_q}" if self.len_q == self.len_kv else f"Tq{self.len_q}/Tk{self.len_kv}"
        mask = "causal" if self.causal else "full"
        return (f"{implementation}/B{self.batch}/{heads}/{length}/d{self.head_dim}/{self.dtype}/{mask}/"
                f"{self.cache}/manual_time")

    def flops(self):
        """4·B·H·Tq·Tk·d, halved when causal: the same convention for everybody."""
        whole = 4.0 * self.batch * self.heads_q * self.len_q * self.len_kv * self.head_dim
        return whole / 2 if self.causal else whole

    def tensor_bytes(self):
        size = 4 if self.dtype == "fp32" else 2
        q = self.batch * self.heads_q * self.len_q * self.head_dim
        k = self.batch * self.heads_kv * self.len_kv * self.head_dim
        return 2 * (q + k) * size + 4 * self.batch * self.heads_q * self.len_q

    def o_bytes(self):
        return self.batch * self.heads_q * self.len_q * self.head_dim * (4 if self.dtype == "fp32" else 2)

    def tensors(self, device, seed):
        generator = torch.Generator(device).manual_seed(seed)
        def normal(heads, tokens):
            return torch.randn(self.batch, heads, tokens, self.head_dim, generator=generator, device=device,
                               dtype=torch.float32).to(getattr(torch, TORCH_DTYPE[self.dtype]))
        return (normal(self.heads_q, self.len_q), normal(self.heads_kv, self.len_kv),
                normal(self.heads_kv, self.len_kv))


def sdpa(backend):
    """Attention by one backend of PyTorch, or by whichever it chooses."""
    def attend(q, k, v, shape):
        grouped = {"enable_gqa": True} if shape.heads_q != shape.heads_kv else {}
        if shape.causal and shape.len_q != shape.len_kv:
            raise NotImplementedError("PyTorch aligns the causal mask top-left, we bottom-right")
        call = torch.nn.functional.scaled_dot_product_attention
        if backend is None:
            return call(q, k, v, is_causal=shape.causal, **grouped)
        with sdpa_kernel([backend]):
            return call(q, k, v, is_causal=shape.causal, **grouped)
    return attend


def peers(device):
    """Names and functions, the naive one first."""
    if device == "cpu":
        return {"torch_cpu_math": sdpa(SDPBackend.MATH), "torch_cpu": sdpa(None)}
    found = {"torch_math": sdpa(SDPBackend.MATH), "torch_efficient": sdpa(SDPBackend.EFFICIENT_ATTENTION),
             "torch_flash": sdpa(SDPBackend.FLASH_ATTENTION)}
    if hasattr(SDPBackend, "CUDNN_ATTENTION"):
        found["torch_cudnn"] = sdpa(SDPBackend.CUDNN_ATTENTION)
    if triton_attention:
        found["triton"] = lambda q, k, v, shape: triton_attention(q, k, v, shape.causal)
    return found


class CpuCase:
    """The same tensors in every call; caches are warm as far as they fit."""

    def __init__(self, attend, shape, seed):
        if shape.cache != "warm":
            raise NotImplementedError("CPU implementations are timed with warm caches only")
        self.shape, self.sets, self.calls, self.scratch = shape, [shape.tensors("cpu", seed)], 1, None
        self.call = lambda: attend(*self.sets[0], shape)
        self.output = self.call()

    def seconds(self):
        start = time.perf_counter()
        self.call()
        return time.perf_counter() - start


class GpuCase:
    """Calls in a CUDA graph, one behind the other without the host in between. Long ones need none, and the
    memory of naive attention would not be there twice."""

    def __init__(self, attend, shape, seed):
        self.shape = shape
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        count = math.ceil(2 * l2_bytes / shape.tensor_bytes()) if shape.cache == "cold" else 1
        self.sets = [shape.tensors("cuda", seed + i) for i in range(min(max(count, 1), 256))]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # warm up: kernels are loaded, chosen, compiled
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            self.output = attend(*self.sets[0], shape)
            torch.cuda.synchronize()
            self.scratch = max(0, torch.cuda.max_memory_allocated() - before - shape.o_bytes())
            once = self.timed(lambda: attend(*self.sets[0], shape))
        torch.cuda.current_stream().wait_stream(stream)
        self.calls = min(max(math.ceil(REPLAY_SECONDS / max(once, 1e-6)), len(self.sets)), 256)
        self.set_of_output = (self.calls - 1) % len(self.sets)

        def calls():
            for i in range(self.calls):
                # Its memory may serve the next call: there is room for one or two outputs only.
                self.output = attend(*self.sets[i % len(self.sets)], shape)
        if once > LONG_SECONDS:
            self.run = calls
        else:
            torch.cuda.empty_cache()  # a graph has memory of its own
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                calls()
            self.run = graph.replay
        self.run()
        torch.cuda.synchronize()

    @staticmethod
    def timed(work):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e-3

    def seconds(self):
        return self.timed(self.run)


def spot_errors(case, seed):
    """Largest error of some rows against fp64, and the same relative to the row's largest |O|."""
    shape = case.shape
    q, k, v = case.sets[getattr(case, "set_of_output", 0)]
    generator = torch.Generator().manual_seed(seed)
    def draw(n):
        return int(torch.randint(n, (1,), generator=generator))
    rows = [(0, 0, 0), (shape.batch - 1, shape.heads_q - 1, shape.len_q - 1)]
    rows += [(draw(shape.batch), draw(shape.heads_q), draw(shape.len_q)) for _ in range(SPOT_ROWS - 2)]
    largest = relative = 0.0
    for b, h, i in rows:
        kv = h // (shape.heads_q // shape.heads_kv)
        seen = min(max(i + 1 + shape.len_kv - shape.len_q, 0), shape.len_kv) if shape.causal else shape.len_kv
        scores = (k[b, kv, :seen].double() @ q[b, h, i].double()) / math.sqrt(shape.head_dim)
        gold = torch.softmax(scores, 0) @ v[b, kv, :seen].double()
        error = float((case.output[b, h, i].double() - gold).abs().max())
        largest = error if not error <= largest else largest
        share = error / float(gold.abs().max())
        relative = share if not share <= relative else relative
    return largest, relative


def measure(name, attend, shape, arguments, device):
    row = {"implementation": name, "device": device, **shape.json(), "direction": "forward",
           "name": shape.name(name), "set": shape.set, "cache": shape.cache, "status": "ok", "reason": "",
           "bytes": shape.tensor_bytes(), "flops": shape.flops(), "bound_ms": shape.bound_ms}
    try:
        case = (CpuCase if device == "cpu" else GpuCase)(attend, shape, arguments.seed)
        # First: unless the repetitions rest, their rate is the one at that power.
        power = None if device == "cpu" else mean_power(energy_counter(), case.seconds, arguments.power)
        repetitions = []
        for _ in range(arguments.repetitions):
            time.sleep(arguments.rest)
            times = []
            while sum(times) < REPETITION_SECONDS:
                times.append(case.seconds())
            repetitions.append(sum(times) / (len(times) * case.calls))
        largest, relative = spot_errors(case, arguments.seed)
    except torch.cuda.OutOfMemoryError as error:
        return {**row, **NO_TIME, "status": "out_of_memory", "reason": str(error).splitlines()[0]}
    except NotImplementedError as error:
        return {**row, **NO_TIME, "status": "unsupported", "reason": str(error)}
    except RuntimeError as error:
        message = " ".join(str(error).split())
        status = ("unsupported" if "No available kernel" in message or "not support" in message else
                  "out_of_memory" if "can't allocate memory" in message else "failed")
        return {**row, **NO_TIME, "status": status, "reason": message[:300]}
    median = statistics.median(repetitions)
    # Eager backends keep P, and some S, in the type of the inputs: eight roundings, not our 2x rule.
    right = relative <= 8 * ROUNDOFF[shape.dtype] + math.sqrt(shape.len_kv) * ROUNDOFF["fp32"]
    row.update(median_ms=1e3 * median, min_ms=1e3 * min(repetitions), runs=len(repetitions),
               calls_per_run=case.calls, tflops=1e-12 * shape.flops() / median,
               bound_share=shape.bound_ms and shape.bound_ms / (1e3 * median), scratch_bytes=case.scratch,
               peak_bytes=None if case.scratch is None else shape.tensor_bytes() + case.scratch,
               max_error=largest, power_w=power, status="ok" if right else "failed",
               reason="" if right else f"relative error {relative:.2g} against fp64")
    return row


@functools.lru_cache(maxsize=None)
def energy_counter():
    """Of the GPU that PyTorch uses."""
    p = torch.cuda.get_device_properties(0)
    if not hasattr(p, "pci_bus_id"):  # PyTorch before 2.5
        return EnergyCounter("unknown")
    return EnergyCounter(f"{p.pci_domain_id:08x}:{p.pci_bus_id:02x}:{p.pci_device_id:02x}.0")


def first_match(path, pattern):
    try:
        match = re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8"), re.M)
        return match.group(1).strip() if match else "unknown"
    except OSError:
        return "unknown"


def output_of(*command):
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
        return run.stdout.strip() if run.returncode == 0 else ""
    except OSError:
        return ""


def context(device, seed):
    """Machine, versions, seed and date, under the keys that our programs use."""
    distribution = first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)')
    known = {"program": "scripts/peers.py", "machine": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
             "cores": os.cpu_count(), "threads": torch.get_num_threads(),
             "os": f"{distribution}, {platform.system()} {platform.machine()}",
             "torch": torch.__version__, "triton": triton_version,
             "commit": (output_of("git", "describe", "--always", "--dirty", "--abbrev=12")
                        or os.environ.get("FA_COMMIT", "unknown")),
             "seed": seed,
             "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
    if device == "cuda":
        driver = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        known.update(gpu=torch.cuda.get_device_name(0), driver=driver.splitlines()[0] if driver else "unknown",
                     cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version())
    return known


def faults(rows):
    """What is wrong with all rows together, in words that name the first of them; none if nothing is."""
    failed = [row for row in rows if row["status"] == "failed"]
    if failed:
        yield f"{len(failed)} of {len(rows)} rows failed, the first: {failed[0]['name']}: {failed[0]['reason']}"
    if all(row["status"] != "ok" for row in rows):
        yield f"no row was timed, the first: {rows[0]['name']}: {rows[0]['status']}: {rows[0]['reason']}"


def main():
    flags = parser(__doc__)
    arguments = flags.parse_args()
    shapes = [Shape(row) for row in rows_of(flags, arguments)]
    if torch is None:
        fail(f"PyTorch 2.3 or later is needed and not here ({MISSING}); the course itself does without it")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        fail("--device cuda: PyTorch finds no GPU")
    # Before anything is measured that could not be kept.
    if arguments.json and (arguments.json.is_dir() or not os.access(arguments.json.absolute().parent, os.W_OK)):
        fail(f"--json {arguments.json}: cannot be written")
    device = "cpu" if arguments.device == "cpu" or not torch.cuda.is_available() else "cuda"
    if arguments.threads > 0:
        torch.set_num_threads(arguments.threads)
    if device == "cuda" and arguments.memory_limit > 0:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, arguments.memory_limit * 2**30 / total))
    chosen = {n: f for n, f in peers(device).items() if re.search(arguments.implementations, n)}
    if not chosen:
        flags.error(f"--implementations: \"{arguments.implementations}\" fits none of {', '.join(peers(device))}")
    if device == "cpu" and arguments.cache == "cold":
        flags.error("--cache cold: CPU implementations are timed with warm caches only")
    if device == "cuda" and triton_attention is None:
        print("Triton is not here: its kernel is left out.")

    rows = []
    with torch.inference_mode():
        for shape in shapes:
            for name, attend in chosen.items():
                row = measure(name, attend, shape, arguments, device)
                rows.append(row)
                figure = (f"{row['median_ms']:10.4f} ms {row['tflops']:8.2f} TFLOP/s" if row["status"] == "ok"
                          else f"{row['status']}: {row['reason'][:80]}")
                print(f"{row['name']:66} {figure}", flush=True)
                if device == "cuda":
                    torch.cuda.empty_cache()
    failed = [row for row in rows if row["status"] == "failed"]
    timed = [row for row in rows if row["status"] == "ok"]
    checks = [{"name": "rows timed", "goal": ">= 1", "measured": str(len(timed)), "pass": bool(timed)},
              {"name": "rows that failed", "goal": "= 0", "measured": str(len(failed)), "pass": not failed}]
    if arguments.json:
        rest = {"rest_seconds": arguments.rest} if arguments.rest > 0 else {}
        document = {"context": context(device, arguments.seed), "rows": rows, "checks": checks, **rest}
        temporary = arguments.json.with_name(arguments.json.name + f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        temporary.replace(arguments.json)
    for fault in faults(rows):
        fail(fault)
    return 0


if __name__ == "__main__":
    sys.exit(main())
