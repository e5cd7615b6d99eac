#!/usr/bin/env python3
"""Compares what the executor counts for chapter 4's kernels with what the hardware's counters say.

Runs ch04_cuda_tiled under Nsight Compute (ncu) on a small problem that the program counts on the executor in
the same run: bytes that threads read from and write to global memory, accesses of warps to shared memory, and
the clocks ("wavefronts") that these take, with bank conflicts and without.

usage: gpu_counters.py [--build FOLDER] [--ncu PATH] [--json FILE]         FOLDER is build by default
exit status: 0 if they agree; 1 if not, or if something went wrong; 77 ("skipped: …") if there is no ncu
"""
import argparse
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADS, LENGTH = 2, 256
BLOCK_M = {"tiled": 64, "register_tiled": 128}
# What is compared: its name, where the program's JSON has it, ncu's metric, and by how much they may differ.
COMPARED = [
    ("bytes read", "traffic", "read_bytes", "smsp__sass_data_bytes_mem_global_op_ld.sum", 0.0),
    ("bytes written", "traffic", "written_bytes", "smsp__sass_data_bytes_mem_global_op_st.sum", 0.0),
    ("accesses to shared memory", "bank_conflicts", "instructions", "smsp__sass_inst_executed_op_shared.sum", 0.0),
    ("clocks without conflicts", "bank_conflicts", "ideal",
     "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_ideal.sum", 0.02),
    ("clocks", "bank_conflicts", "wavefronts", "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared.sum", 0.05),
]


class Wrong(Exception):
    """Something is not as it should be, in words."""


def run_under_ncu(ncu, program, folder):
    """The program's JSON and ncu's table."""
    results, log = folder / "program.json", folder / "ncu.csv"
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
               "--print-kernel-base", "function", "--kernel-name", "regex:^(register_)?tiled_attention$",
               "--metrics", ",".join(metric for *_, metric, _ in COMPARED), "--log-file", str(log),
               str(program), "--device", "cuda", "--batch", "1", "--heads", str(HEADS), "--length", str(LENGTH),
               "--counted-length", str(LENGTH), "--naive-length", "512", "--runs", "1", "--json", str(results)]
    run = subprocess.run(command, capture_output=True, text=True)
    said = (run.stderr or run.stdout).strip().splitlines()
    if not results.exists() or not log.exists():
        raise Wrong(f"{' '.join(command)}: exit status {run.returncode}: {said[-1:]}")
    return json.loads(results.read_text(encoding="utf-8")), log.read_text(encoding="utf-8")


def launches(text):
    """ncu's table as a list of dictionaries, one for each launch; what else it says is left out."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        raise Wrong(f"no launch in what ncu says: {text.strip().splitlines()[-1:]}")
    table = list(csv.DictReader(lines))
    return table[1:]  # the first line has the units


def number(text):
    return float(text.replace(",", ""))


def compare(program, table):
    """Rows of executor beside hardware, and checks."""
    rows, checks = [], []
    for kernel, block_m in BLOCK_M.items():
        blocks = HEADS * -(-LENGTH // block_m)
        found = [row for row in table if row["Kernel Name"].split("<")[0].split("::")[-1] == f"{kernel}_attention"
                 and re.match(rf"\(\s*{blocks},", row["Grid Size"])]
        if not found:
            raise Wrong(f"no launch of {kernel}_attention with {blocks} blocks among {len(table)}")
        for what, section, key, metric, tolerance in COMPARED:
            counted = next(row[key] for row in program[section]
                           if row["kernel"] == kernel and row.get("padded", True))
            if not found[0].get(metric):
                raise Wrong(f"ncu has no {metric}")
            measured = number(found[0][metric])
            rows.append({"kernel": kernel, "what": what, "executor": counted, "hardware": int(measured)})
            checks.append({"name": f"{kernel}: {what}", "goal": f"within {100 * tolerance:g} % of {counted}",
                           "measured": f"{measured:.0f}",
                           "pass": abs(measured - counted) <= tolerance * counted})
    return rows, checks


def main():
    parser = argparse.ArgumentParser(description="compares the executor's counts with the hardware's")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--ncu", help="Nsight Compute's command line, with its path")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    ncu = arguments.ncu or shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if not ncu:
        print("skipped: no ncu (Nsight Compute)", file=sys.stderr)
        return 77
    try:
        with tempfile.TemporaryDirectory() as folder:
            program, log = run_under_ncu(ncu, arguments.build / "bin" / "ch04_cuda_tiled", pathlib.Path(folder))
        rows, checks = compare(program, launches(log))
    except (Wrong, OSError) as error:
        print(f"gpu_counters.py: {error}", file=sys.stderr)
        return 1
    context = program["context"] | {"program": "scripts/gpu_counters.py"}
    for row, check in zip(rows, checks):
        print(f"{row['kernel']:16}{row['what']:28}{row['executor']:>12}{row['hardware']:>12}"
              f"  {'pass' if check['pass'] else 'FAIL'}")
    if arguments.json:
        document = {"context": context, "rows": rows, "checks": checks}
        temporary = arguments.json.with_name(arguments.json.name + ".tmp")
        temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(arguments.json)
    return 0 if all(check["pass"] for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
