#!/usr/bin/env python3
"""Compares what the executor counts for chapter 4's kernels with what the hardware's counters say.

Runs ch04_cuda_tiled under Nsight Compute (ncu) on a small problem that the program counts on the executor in
the same run: bytes that threads read from and write to global memory, accesses of warps to shared memory, and
the clocks ("wavefronts") that these take. Then, for the shape whose times the program predicts, how busy each
unit of the GPU is.

usage: gpu_counters.py [--build FOLDER] [--ncu PATH] [--json FILE]         FOLDER is build by default
exit status: 0 if they agree; 1 if not, or if something went wrong; 77 ("skipped: …") if there is no ncu
"""
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from flags import Flags

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADS, LENGTH = 2, 256
BLOCK_M = {"tiled": 64, "register_tiled": 128}
SMALL = ["--batch", "1", "--heads", str(HEADS), "--length", str(LENGTH), "--counted-length", str(LENGTH)]
# What is compared: its name, where the program's JSON has it, ncu's metric, and by how much they may differ.
COUNTED = [
    ("bytes read", "traffic", "read_bytes", "smsp__sass_data_bytes_mem_global_op_ld.sum", 0.0),
    ("bytes written", "traffic", "written_bytes", "smsp__sass_data_bytes_mem_global_op_st.sum", 0.0),
    ("accesses to shared memory", "bank_conflicts", "instructions", "smsp__sass_inst_executed_op_shared.sum", 0.02),
    ("clocks of shared memory", "bank_conflicts", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 0.05),
]
# Units, where the program's JSON has the time that they are predicted to be busy, and ncu's metric for it.
DURATION = "gpu__time_duration.sum"
UNITS = [
    ("memory", "memory_ms", "dram__throughput.avg.pct_of_peak_sustained_elapsed"),
    ("products", "products_ms", "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    ("shared memory", "shared_ms", "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed"),
    ("exponentials", "exponentials_ms", "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed"),
    ("issue", None, "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"),
]


class Wrong(Exception):
    """Something is not as it should be, in words."""


def run_under_ncu(ncu, program, flags, metrics):
    """The program's JSON, and ncu's table as a list of dictionaries, one for each launch."""
    with tempfile.TemporaryDirectory() as folder:
        results, log = pathlib.Path(folder) / "program.json", pathlib.Path(folder) / "ncu.csv"
        command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
                   "--print-kernel-base", "function", "--kernel-name", "regex:^(register_)?tiled_attention$",
                   "--metrics", ",".join(metrics), "--log-file", str(log), str(program), "--device", "cuda",
                   *flags, "--naive-length", "512", "--runs", "1", "--json", str(results)]
        run = subprocess.run(command, capture_output=True, text=True)
        if not results.exists() or not log.exists():
            said = (run.stderr or run.stdout).strip().splitlines()
            raise Wrong(f"{' '.join(command)}: exit status {run.returncode}: {said[-1:]}")
        return json.loads(results.read_text(encoding="utf-8")), launches(log.read_text(encoding="utf-8"))


def launches(text):
    """The rows of ncu's table. What else it says is left out, as is the line with the units."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        raise Wrong(f"no launch in what ncu says: {text.strip().splitlines()[-1:]}")
    return list(csv.DictReader(lines))[1:]


def launch_of(table, kernel, blocks):
    """The first launch of a kernel with so many blocks."""
    for row in table:
        name = row["Kernel Name"].split("<")[0].split("::")[-1]
        if name == f"{kernel}_attention" and re.match(rf"\(\s*{blocks},", row["Grid Size"]):
            return row
    raise Wrong(f"no launch of {kernel}_attention with {blocks} blocks among {len(table)}")


def number(row, metric):
    try:
        return float(row[metric].replace(",", ""))
    except (KeyError, ValueError) as error:
        raise Wrong(f"ncu has no number for {metric} (it has {', '.join(row)})") from error


def counted(ncu, program):
    """What the executor counts beside the hardware's counters: context, rows, checks."""
    results, table = run_under_ncu(ncu, program, SMALL, [metric for *_, metric, _ in COUNTED])
    rows, checks = [], []
    for kernel, block_m in BLOCK_M.items():
        launch = launch_of(table, kernel, HEADS * -(-LENGTH // block_m))
        for what, section, key, metric, tolerance in COUNTED:
            count = next(row[key] for row in results[section]
                         if row["kernel"] == kernel and row.get("padded", True))
            measured = number(launch, metric)
            rows.append({"kernel": kernel, "what": what, "executor": count, "hardware": round(measured)})
            checks.append({"name": f"{kernel}: {what}", "goal": f"within {100 * tolerance:g} % of {count}",
                           "measured": f"{measured:.0f}",
                           "pass": abs(measured - count) <= tolerance * count})
    return results["context"], rows, checks


def busy(ncu, program):
    """For the shape that the program predicts, the share of a kernel's time that each unit is busy."""
    results, table = run_under_ncu(ncu, program, [], [DURATION, *(metric for *_, metric in UNITS)])
    rows = []
    for kernel in BLOCK_M:
        blocks = next(row["blocks"] for row in results["launch"] if row["kernel"] == kernel)
        predicted = next(row for row in results["predicted"] if row["kernel"] == kernel)
        launch = launch_of(table, kernel, blocks)
        milliseconds = 1e-6 * number(launch, DURATION)  # of nanoseconds
        for unit, key, metric in UNITS:
            rows.append({"kernel": kernel, "unit": unit,
                         "predicted, % of the time": round(100 * predicted[key] / milliseconds, 1) if key else None,
                         "measured, %": round(number(launch, metric), 1)})
    return rows


def main():
    parser = Flags(description="compares the executor's counts with the hardware's")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--ncu", help="Nsight Compute's command line, with its path")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    ncu = arguments.ncu or shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if not ncu:
        print("skipped: no ncu (Nsight Compute)", file=sys.stderr)
        return 77
    program = arguments.build / "bin" / "ch04_cuda_tiled"
    try:
        context, rows, checks = counted(ncu, program)
        units = busy(ncu, program)
    except (Wrong, OSError) as error:
        print(f"gpu_counters.py: {error}", file=sys.stderr)
        return 1
    for row, check in zip(rows, checks):
        print(f"{row['kernel']:16}{row['what']:28}{row['executor']:>12}{row['hardware']:>12}"
              f"  {'pass' if check['pass'] else 'FAIL'}")
    for row in units:
        print("".join(f"{'' if value is None else value:>20}" for value in row.values()))
    if arguments.json:
        document = {"context": context | {"program": "scripts/gpu_counters.py"}, "rows": rows, "units": units,
                    "checks": checks}
        temporary = arguments.json.with_name(arguments.json.name + ".tmp")
        temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(arguments.json)
    return 0 if all(check["pass"] for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
