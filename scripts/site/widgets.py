"""The moving pictures: which there are, and the data that each gets."""
import json
import re

import timeline_data
from code_blocks import coloured_lines
from embed import Wrong

RECORDED = {"memory", "stepper", "tile-scan"}  # docs/site/data/NAME.json, written by widget_data.py
RESULTS = ["benchmark.json", "small_card.json", "peers.json", "tensor_cores.json", "tensor_cores_peers.json",
           "benchmark_cpu.json", "peers_cpu.json"]
ROW_KEYS = ["implementation", "device", "set", "cache", "batch", "heads_q", "heads_kv", "len_q", "len_kv", "head_dim",
            "dtype", "causal", "status", "reason", "median_ms", "min_ms", "runs", "tflops", "bound_share",
            "scratch_bytes", "peak_bytes"]


def is_known(name):
    return name in RECORDED or name in ("kernel", "explorer", "timeline")


def results(root):
    """The timed rows of every machine's results, in files as the programs wrote them."""
    files = []
    for path in sorted((root / "docs/results").glob("*/*.json")):
        if path.name not in RESULTS:
            continue
        document = json.loads(path.read_text(encoding="utf-8"))
        rows = [{key: row[key] for key in ROW_KEYS if key in row}
                for row in document["rows"] if row.get("set") and row.get("cache")]
        if rows:
            files.append({"file": path.relative_to(root).as_posix(), "context": document["context"], "rows": rows})
    return {"files": files} if files else None


def lines_of(step, marks, lines):
    """Numbers, from 0, of the lines that a step is about: those of a region, between two, or after one."""
    which, what = next(iter(step["lines"].items()))
    if which == "region":
        first, last = marks[what][0] + 1, marks[what][1]
    elif which == "between":
        first, last = marks[what[0]][1] + 1, marks[what[1]][0]
    else:
        end = next(i for i in range(marks[what][1], len(lines)) if lines[i] == "}")
        first, last = marks[what][1] + 1, end
    while not lines[first].strip():
        first += 1
    while not lines[last - 1].strip():
        last -= 1
    return range(first, last)


def kernel(root):
    """What the program wrote, and the lines of the walk-through's kernel with, for each step, those that it is about:
    found by the regions that mark them in the compiled source."""
    description = json.loads((root / "docs/site/data/kernel_steps.json").read_text(encoding="utf-8"))
    lines = (root / description["file"]).read_text(encoding="utf-8").splitlines()
    marks = {}
    for i, line in enumerate(lines):
        if match := re.fullmatch(r"\s*// \[([\w-]+)\]\s*", line):
            marks.setdefault(match[1], []).append(i)
    for name, at in marks.items():
        if len(at) != 2:
            raise Wrong(f"{description['file']}: region [{name}] is marked {len(at)} times")
    markers = {i for at in marks.values() for i in at}
    numbers = [lines_of(step, marks, lines) for step in description["steps"]]
    shown = [i for i in range(min(n[0] for n in numbers), max(n[-1] for n in numbers) + 2) if i not in markers]
    place = {i: position for position, i in enumerate(shown)}
    coloured = coloured_lines("\n".join(lines), "cpp")
    recorded = json.loads((root / "docs/site/data/kernel.json").read_text(encoding="utf-8"))
    steps = [{**step, "lines": [place[i] for i in number if i in place]}
             for step, number in zip(description["steps"], numbers)]
    return {**recorded, "file": description["file"], "code": [coloured[i] for i in shown], "steps": steps}


def timeline(root):
    """What was measured on GPUs, where results hold it, and what the executor recorded."""
    sources = []
    for path in sorted((root / "docs/results").glob("*/ch09_hopper.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("timeline_clock") == timeline_data.CYCLES:
            context = document["context"]
            sources.append({"name": context["gpu"], "commit": context["commit"], "date": context["date"][:10],
                            **timeline_data.compact(document)})
    recorded = json.loads((root / "docs/site/data/timeline.json").read_text(encoding="utf-8"))
    sources.append({"name": "CPU executor", **recorded})
    phases = [dict(zip(("name", "letter", "colour", "waits"), phase)) for phase in timeline_data.PHASES]
    return {"phases": phases, "sources": [{**s, "order": timeline_data.is_order(s)} for s in sources]}


def data_of(name, root):
    """The data of a widget; None if there is none yet, and the fallback has to do."""
    if name == "explorer":
        return results(root)
    if name == "kernel":
        return kernel(root)
    if name == "timeline":
        return timeline(root)
    return json.loads((root / f"docs/site/data/{name}.json").read_text(encoding="utf-8"))


def write_data(name, root, folder):
    """Writes the data as a script: pages read from disk may not fetch. Whether there is any."""
    data = data_of(name, root)
    if data is None:
        return False
    path = folder / "site" / "data" / f"{name}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    path.write_text(f"(window.COURSE_DATA = window.COURSE_DATA || {{}})[\"{name}\"] = {text};\n", encoding="utf-8")
    return True
