"""Tables for the pages from results of ch06_benchmark and peers.py: the views that scripts/embed.py offers.

    time|rate|rate_gflops|share|scratch|peak|clock|power|predicted SET CACHE
                                         implementations against T; SET and CACHE as in the rows
    cpu_rates                            GFLOP/s, implementations against T and threads, fastest runs
    over NAME SET CACHE                  the times over those of the implementation NAME
    accuracy                             error against fp64, implementations against T
    ceilings                             what the machine can do at best, by type of element
    crossover                            from which T each fused implementation is faster than the naive one
    block_sizes                          every size that was tried, at the lengths at which it was
    timing_methods                       what several ways of timing give
    network TYPE                         GPT-2 with each attention that runs with activations in TYPE (chapter 7)
    network_losses                       its losses with each attention, types across
    network_calls LENGTH                 a call of attention, timed alone in chapter 6 and within the network
    network_outside                      what is not attention: the products' time predicted, and all of it measured
    network_throughput                   tokens a second of others
    checks                               goals and what was measured
    context                              one line: the machine, the versions, the seed, the date
"""
import json
import math
import pathlib
import re

import network_tables
import plot
import plot_bars
import timeline_data
import timeline_picture

MEASURED = ["benchmark.json", "benchmark_cpu.json", "peers.json", "peers_cpu.json", "small_card.json", "ch09_hopper.json"]
# The steps of chapters 8 and 9 have tables of their own there.
STEPS = re.compile(r"cuda_(mma|ldmatrix|swizzle|registers|cp_async|masks|lazy|"
                   r"wgmma|producer|overlap|ping_pong|warpgroups|diagonal|persistent|hopper_lazy)$")
NOTHING = "*Nothing is recorded for this machine yet. `scripts/measure.sh` does it.*"


def seconds(value):
    for factor, unit in [(1, "s"), (1e-3, "ms"), (1e-6, "µs")]:
        if value >= factor * 0.9995:
            break
    return f"{three_digits(value / factor)} {unit}"


def three_digits(value):
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value)) + 1e-12))
    return f"{value:.{decimals}f}"


def size(value):
    for factor, unit in [(2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")]:
        if value >= factor:
            return f"{three_digits(value / factor)} {unit}"
    return f"{value:.0f} B"


CELLS = {
    "time": lambda row: seconds(row["median_ms"] * 1e-3),
    "rate": lambda row: f"{three_digits(row['tflops'])}",
    "rate_gflops": lambda row: f"{three_digits(1e3 * row['tflops'])}",
    "share": lambda row: "" if row["bound_share"] is None else f"{three_digits(100 * row['bound_share'])} %",
    "scratch": lambda row: "" if row["scratch_bytes"] is None else size(row["scratch_bytes"]),
    "peak": lambda row: "" if row["peak_bytes"] is None else size(row["peak_bytes"]),
    "clock": lambda row: f"{row['clock_mhz']:.0f}",
    "power": lambda row: "-" if row.get("power_w") is None else f"{row['power_w']:.0f}",
    "predicted": lambda row: ("" if row["predicted_ms"] is None else
                              f"{seconds(row['predicted_ms'] * 1e-3)} ({row['median_ms'] / row['predicted_ms']:.2f})"),
}
CORNERS = {"time": "time", "rate": "TFLOP/s", "rate_gflops": "GFLOP/s", "share": "share of the bound",
           "scratch": "scratch memory", "peak": "memory", "clock": "MHz", "power": "W",
           "predicted": "predicted (measured / predicted)"}


def markdown(headers, rows, left=1):
    lines = [headers, ["---"] * left + ["--:"] * (len(headers) - left), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def matrix(corner, rows, cell_of):
    """Implementations downwards in the order of the rows, lengths across."""
    lengths = sorted({row["len_q"] for row in rows})
    names = list(dict.fromkeys(row["implementation"] for row in rows))
    cells = {(row["implementation"], row["len_q"]):
             cell_of(row) if row["status"] == "ok" else row["status"].replace("_", " ") for row in rows}
    return markdown([corner, *(f"T = {t}" for t in lengths)],
                    [[f"`{name}`", *(cells.get((name, t), "") for t in lengths)] for name in names])


def without_steps(document):
    """Results without implementations that are steps to another one."""
    kept = {key: [item for item in document[key] if not STEPS.match(item.get("implementation", ""))]
            for key in ("rows", "crossover") if key in document}
    return {**document, **kept}


def timed(documents, words):
    if len(words) != 2:
        raise ValueError("needs a set of shapes and a cache state, such as \"causal cold\"")
    rows = [row for document in documents for row in document["rows"]
            if row.get("set") == words[0] and row.get("cache") == words[1]]
    if not rows:
        raise ValueError(f"no rows of set {words[0]}, {words[1]}")
    return rows


def extras(documents, key):
    found = [item for document in documents for item in document.get(key, [])]
    if not found:
        raise ValueError(f"no \"{key}\" in the results")
    return found


def context_line(document):
    c = document["context"]
    parts = [c.get("gpu") or c["machine"], c.get("driver") and f"driver {c['driver']}",
             c.get("cuda") and f"CUDA {c['cuda']}", c.get("torch") and f"PyTorch {c['torch']}",
             c.get("cudnn") and f"cuDNN {c['cudnn']}", c.get("triton") and f"Triton {c['triton']}", c.get("compiler"),
             document.get("rest_seconds") and f"a rest of {document['rest_seconds']:g} s before each repetition",
             c.get("commit") and f"commit {c['commit']}", f"random inputs, seed {c['seed']}", c["date"][:10]]
    return ", ".join(part for part in parts if part)


def view(name, words, documents):
    """A table or line in Markdown. Raises ValueError in words."""
    if name in CELLS:
        return matrix(CORNERS[name], timed(documents, words), CELLS[name])
    if name == "cpu_rates":
        rows = [row for d in documents for row in d["rows"] 
                if row["device"] == "cpu" and "tflops" in row]
        columns = sorted({(row["threads"], row["len_q"]) for row in rows})
        cells = {(row["implementation"], row["threads"], row["len_q"]): f"{1e3 * row['tflops']:.0f}" for row in rows}
        return markdown(["GFLOP/s", *(f"T = {t}, {n} thread{'s' * (n > 1)}" for n, t in columns)],
                        [[f"`{name}`", *(cells.get((name, *column), "") for column in columns)]
                         for name in dict.fromkeys(row["implementation"] for row in rows)])
    if name == "over":
        if len(words) != 3:
            raise ValueError("needs an implementation, a set of shapes and a cache state")
        rows = timed(documents, words[1:])
        own = {row["len_q"]: row["median_ms"] for row in rows
               if row["implementation"] == words[0] and row["status"] == "ok"}
        if not own:
            raise ValueError(f"no timed rows of {words[0]}")
        return matrix(f"time over {words[0]}'s", [row for row in rows if row["len_q"] in own],
                      lambda row: three_digits(row["median_ms"] / own[row["len_q"]]))
    if name == "accuracy":
        rows = [row for d in documents for row in d["rows"] if row.get("quantity") == "error"]
        return matrix("largest error (rms)", rows, lambda r: f"{r['max_error']:.1e} ({r['rms_error']:.1e})")
    if name == "ceilings":
        return markdown(["products of", "TFLOP/s", "memory, TB/s", "exponentials, T/s"],
                        [[c["dtype"], *(three_digits(c[rate] * 1e-12)
                                        for rate in ("flops_per_s", "bytes_per_s", "exponentials_per_s"))]
                         for c in extras(documents, "ceilings")])
    if name == "crossover":
        return markdown(["fused", "naive", "the fused one is"],
                        [[f"`{c['implementation']}`", f"`{c['naive']}`", c["verdict"]]
                         for c in extras(documents, "crossover")], left=3)
    if name == "block_sizes":
        sizes = {}
        for s in extras(documents, "block_sizes"):
            sizes.setdefault((s["family"], s["block_q"], s["block_kv"]), {})[s["len_q"]] = s
        lengths = sorted({length for by_length in sizes.values() for length in by_length})
        rows = []
        for (family, block_q, block_kv), by_length in sizes.items():
            some = next(iter(by_length.values()))
            rows.append([f"`{family}`", f"{block_q}×{block_kv}" + (", default" if some["default"] else ""),
                         some["resources"], *(f"{seconds(by_length[t]['median_ms'] * 1e-3)}, "
                                              f"{three_digits(by_length[t]['tflops'])}" for t in lengths)])
        return markdown(["kernel", "tile", "what it takes", *(f"T = {t}: median, TFLOP/s" for t in lengths)], rows,
                        left=3)
    if name == "timing_methods":
        items = extras(documents, "timing_methods")
        lengths = sorted({item["len_q"] for item in items})
        cells = {(item["way"], item["len_q"]): seconds(item["ms"] * 1e-3) for item in items}
        return markdown(["way", *(f"T = {t}" for t in lengths)],
                        [[way, *(cells.get((way, t), "") for t in lengths)]
                         for way in dict.fromkeys(item["way"] for item in items)])
    if name in network_tables.VIEWS:
        return markdown(*network_tables.VIEWS[name](documents, *words))
    if name == "checks":
        return markdown(["check", "goal", "measured", "result"],
                        [[c["name"], c["goal"], c["measured"], "pass" if c["pass"] else "FAIL"]
                         for d in documents for c in d["checks"]], left=1)
    if name == "context":
        return "\n".join(dict.fromkeys(context_line(document) for document in documents))
    raise ValueError(f"no view is called \"{name}\"")


VIEWS = [*CELLS, "over", "ceilings", "cpu_rates", "accuracy", "crossover", "block_sizes", "timing_methods", "checks", "context",
         *network_tables.VIEWS]


def documents_of(root, paths):
    """The results in files below `root`. None if no file is there, and scripts/measure.sh would write them: other
    names are mistakes."""
    files = [pathlib.Path(root) / path for path in paths]
    if all(file.name in MEASURED and not file.exists() for file in files):
        return None
    for path, file in zip(paths, files):
        if not file.is_file():
            raise ValueError(f"no file {path}")
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def table(root, paths, part):
    """The view `part` of the results in `paths`; a sentence before they were measured."""
    name, *words = part.split()
    documents = documents_of(root, paths)
    if documents is None:
        return NOTHING
    documents = [without_steps(document) for document in documents]
    try:
        return view(name, words, documents)
    except (KeyError, TypeError) as error:
        raise ValueError(f"a row lacks {error}") from error


def timeline(root, paths):
    """The timeline of the first of the files that is there and holds one, as a program wrote it or in its short form."""
    for path in paths:
        file = pathlib.Path(root) / path
        document = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        if "lanes" in document:
            return timeline_picture.picture(document)
        if "timeline" in document:
            return timeline_picture.picture(timeline_data.compact(document), document["context"].get("gpu"))
    raise ValueError(f"no timeline in {', '.join(paths)}")


def picture(root, paths, words):
    """(title, SVG) of the results in `paths`, or None before they were measured. The words are

    QUANTITY SET CACHE    against T (scripts/plot.py)
    ladder T              predicted and measured rates of a ladder's steps (scripts/plot_bars.py)
    ablations T [dN]      times of a kernel's variants for N channels; else for 64
    timeline              what the warpgroups do when (scripts/timeline_picture.py), of the first file that is there
    """
    kind, *rest = words or [""]
    if words == ["timeline"]:
        return timeline(root, paths)
    if kind in ("ladder", "ablations"):
        numbers = re.fullmatch(r"(\d+)" if kind == "ladder" else r"(\d+)(?: d(\d+))?", " ".join(rest))
        if not numbers or len(paths) != 1:
            raise ValueError(f"{kind} needs one file of results, a length and the picture's file")
    elif len(words) != 3:
        raise ValueError("needs a quantity, a set of shapes, a cache state and a file")
    elif kind not in plot.QUANTITIES:
        raise ValueError(f"\"{kind}\" is none of {', '.join(plot.QUANTITIES)}")
    documents = documents_of(root, paths)
    if documents is None:
        return None
    if kind in ("ladder", "ablations"):
        return getattr(plot_bars, kind)(documents[0], *(int(number) for number in numbers.groups() if number))
    return plot.picture([without_steps(document) for document in documents], kind, *rest)
