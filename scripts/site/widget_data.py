#!/usr/bin/env python3
"""Records the data of the moving pictures, as the programs write it; --check compares it with what they write today.

Numbers may differ by a few roundings, nothing else may.

usage: widget_data.py [--check] [--bin FOLDER] [WIDGET...]
exit status: 0; 1 if --check finds data out of step, or a program fails
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import timeline_data  # noqa: E402
from flags import Flags  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LENGTHS = "256,512,1k,2k,4k,8k,16k,32k,64k,128k"
# widget: program, its flags, and the parts of its results that the picture shows, or a function that gives them
PROGRAMS = {
    "memory": ("ch01_memory_accounting", ["--lengths", LENGTHS, "--measure", "256"], ["accounting"]),
    "stepper": ("ch02_online_softmax", [], ["trace"]),
    "tile-scan": ("ch03_blocked_attention", ["--lengths", "512", "--heads", "2", "--on-chip", "16"], ["traces"]),
    "kernel": ("ch04_cuda_tiled", ["--device", "cpu"], ["launch", "traffic"]),
    "timeline": ("ch09_hopper", ["--device", "cpu", "--lengths", "512", "--orders", "1"], timeline_data.compact),
}
TOLERANCE = 1e-5  # of fp32 sums in another order


def written_today(name, folder):
    """What the program writes now, in the form of the recorded file. Checks of speed may fail, being off the
    defaults; a program that writes no results has failed."""
    program, flags, parts = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as holder:
        results = pathlib.Path(holder) / "results.json"
        run = subprocess.run([folder / program, *flags, "--json", results], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=600)
        if run.returncode not in (0, 1) or not results.is_file():
            raise RuntimeError(f"{program} ended with exit status {run.returncode}\n{run.stdout[-2000:]}")
        document = json.loads(results.read_text(encoding="utf-8"))
    shown = parts(document) if callable(parts) else {part: document[part] for part in parts}
    return {"command": " ".join([program, *flags]), **shown}


def differences(recorded, fresh, where=""):
    """Places where two documents differ by more than roundings."""
    if isinstance(recorded, dict) and isinstance(fresh, dict):
        if list(recorded) != list(fresh):
            return [f"{where}: keys {list(recorded)}, now {list(fresh)}"]
        return [d for key in recorded for d in differences(recorded[key], fresh[key], f"{where}.{key}")]
    if isinstance(recorded, list) and isinstance(fresh, list):
        if len(recorded) != len(fresh):
            return [f"{where}: {len(recorded)} entries, now {len(fresh)}"]
        return [d for i, (a, b) in enumerate(zip(recorded, fresh)) for d in differences(a, b, f"{where}[{i}]")]
    if isinstance(recorded, float) or isinstance(fresh, float):
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (recorded, fresh))
        if numbers and math.isclose(recorded, fresh, rel_tol=TOLERANCE, abs_tol=1e-12):
            return []
    return [] if recorded == fresh and type(recorded) is type(fresh) else [f"{where}: {recorded}, now {fresh}"]


def text_of(document):
    """JSON with one line for each entry of a list."""
    parts = []
    for name, entries in document.items():
        if isinstance(entries, str):
            parts.append(f'"{name}": {json.dumps(entries)}')
        else:
            rows = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
            parts.append(f'"{name}": [\n{rows}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    parser = Flags(description="records the data of the moving pictures")
    parser.add_argument("--check", action="store_true", help="change nothing, compare")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("widgets", nargs="*", metavar="WIDGET", help=f"of {', '.join(PROGRAMS)}")
    arguments = parser.parse_args()
    failed = False
    for name in arguments.widgets or PROGRAMS:
        path = ROOT / "docs/site/data" / f"{name}.json"
        try:
            fresh = written_today(name, arguments.bin)
            if not arguments.check:
                path.write_text(text_of(fresh), encoding="utf-8")
                print(f"{path.relative_to(ROOT)}: written")
                continue
            found = differences(json.loads(path.read_text(encoding="utf-8")), fresh)
            if found:
                raise RuntimeError("out of step, scripts/site/widget_data.py records it anew\n  " + "\n  ".join(found[:10]))
            print(f"{path.relative_to(ROOT)}: in step")
        except (OSError, KeyError, ValueError, RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
