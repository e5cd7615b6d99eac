#!/usr/bin/env python3
"""Draws the road of the course, docs/img/road.svg: the chapters, and how long attention takes along them: in GPT-2, as far
as it was run with an implementation, and in a single call, as the programs of the chapters on the GPU timed it.

Every number is read from results: docs/results/h200/ (chapters 4, 5, 7, 8 and 9), and the data recorded for chapter 1's
moving picture. The same results give the same bytes.

usage: road.py [--check]
exit status: 0; 1 if --check finds the picture out of step, or results name an implementation of no chapter
"""
import json
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from contents import contents  # noqa: E402
from pages import ROOT  # noqa: E402

PICTURE = ROOT / "docs/img/road.svg"
CHAPTER_OF = [(r"cpu_naive", 1), (r"cpu_blocked|cpu_fast$", 3), (r"(cuda|executor)_(naive|tiled|register_tiled)$|cuda_naive", 4),
              (r"exp2", 5), (r"cuda_(mma|ldmatrix|swizzle|registers|cp_async|masks|lazy|tensor_cores)$", 8),
              (r"cuda_(wgmma|producer|overlap|ping_pong|warpgroups|diagonal|persistent|hopper_lazy|hopper)$", 9)]
LEFT_OUT = r"_scores$"  # they round on purpose, and are a lesson of chapter 7, not a step of the road
KINDS = {"fp32": "in GPT-2, fp32", "bf16": "in GPT-2, bf16", "call": "one call, bf16"}  # of bars, in this order
CALLS = [4, 5, 8, 9]  # chapters whose programs time calls in one way: the same shape, medians, L2 warm
CALL = {"device": "cuda", "batch": 4, "heads_q": 12, "heads_kv": 12, "len_q": 4096, "len_kv": 4096, "head_dim": 64, "dtype": "bf16",
        "causal": True, "status": "ok"}
WIDTH, LEFT, BARS, END = 480, 18, 202, 420  # the road's line, where bars begin, and where the longest ends
SHOWN = 576  # wide, in pixels, where there is room
STYLE = """text{fill:#22272e;font-family:Helvetica,Arial,sans-serif}.t{font-weight:bold;font-size:16px}.s{font-size:14px}
.n{fill:#fff;font-weight:bold;font-size:14px}.q{fill:#5d6670}.fp32{fill:#0969da}.bf16{fill:#cf5b28}.call{fill:#1a7f37}.r{stroke:#8c959f;stroke-width:3}.c{fill:#22272e}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#98a1ac}.fp32{fill:#58a6ff}.bf16{fill:#f0883e}.call{fill:#3fb950}.c{fill:#e6edf3}.n{fill:#14171c}}"""


def chapter_of(implementation):
    for pattern, chapter in CHAPTER_OF:
        if re.search(pattern, implementation):
            return chapter
    raise ValueError(f"road.py: {implementation} belongs to no chapter (CHAPTER_OF)")


def runs(root):
    """Rows of chapter 7's results on the real GPT-2: the newest for each implementation and type."""
    newest = {}
    for path in sorted((root / "docs/results/h200").glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["context"]["program"] != "ch07_gpt2_124m" or document["model"]["name"] != "gpt2-124m":
            continue
        for row in document["rows"]:
            if row["status"] != "ok" or re.search(LEFT_OUT, row["implementation"]) or row["dtype"] not in KINDS:
                continue
            key = (row["implementation"], row["dtype"])
            if key not in newest or newest[key][0] < document["context"]["date"]:
                newest[key] = (document["context"]["date"], row, document["context"])
    if not newest:
        raise ValueError("road.py: no results of chapter 7 in docs/results/h200")
    return {key: (row, context) for key, (_, row, context) in newest.items()}


def calls(root):
    """{chapter: {implementation: row}}: one call, as the chapters' own programs timed it; in the order of their steps."""
    found = {}
    for path in sorted((root / "docs/results/h200").glob("ch0[0-9]_*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        chapter = int(document["context"]["program"][2:4])
        for row in document["rows"] if chapter in CALLS else []:
            if "median_ms" in row and all(row.get(key) == value for key, value in CALL.items()) and chapter_of(row["implementation"]) == chapter:
                found.setdefault(chapter, {})[row["implementation"]] = row
    return found


def bars_of(root, found):
    """{(implementation, kind): seconds}. Of calls those of implementations that are in GPT-2, and of each chapter the
    first and the last step; the steps between are on its page."""
    bars = {key: row["attention_seconds"] for key, (row, _) in found.items()}
    within = {name for name, _ in found}
    for rows in calls(root).values():
        names = list(rows)
        bars |= {(name, "call"): 1e-3 * row["median_ms"] for name, row in rows.items() if name in within or name in (names[0], names[-1])}
    return bars


def climbed(root, chapter, means):
    """What a chapter's ladder gained, in a line."""
    rates = [row["tflops"] for row in calls(root).get(chapter, {}).values()]
    return f"{means}: " + (f"from {rates[0]:.0f} to {rates[-1]:.0f} TFLOP/s in {len(rates)} kernels." if rates else "not measured yet.")


def time_text(seconds):
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms"


def sentences(root, found):
    """What a chapter shows, in a line, with numbers from results."""
    accounting = json.loads((root / "docs/site/data/memory.json").read_text(encoding="utf-8"))["accounting"]
    row = next(row for row in accounting if row["length"] == 16384)
    share = row["score_bytes"] / row["qkvo_bytes"]
    traffic = row["naive_moved_bytes"] / row["flash_q_outside_moved_bytes"]
    moved = max(abs(r["loss_delta"]) for (_, dtype), (r, _) in found.items() if dtype == "fp32")
    return {1: f"At 16,384 tokens S is {share:.3g} times as large as Q, K, V and O.",
            2: "A row in one pass: maximum, sum and a correction.",
            3: f"In tiles, {traffic:.3g} times fewer bytes move at 16,384 tokens.",
            4: "The GPU: three kernels with S in memory, then one without.",
            5: "The scale and log2(e) in one factor.",
            6: "Every implementation in one way, beside the vendor's.",
            7: f"In fp32, the loss of GPT-2 moves by {moved:.1e} at most.",
            8: climbed(root, 8, "mma"),
            9: climbed(root, 9, "TMA, wgmma and roles")}


def draw(root=ROOT):
    found = runs(root)
    order, _ = contents(root)
    tokens = {row["tokens"] for row, _ in found.values()}
    if len(tokens) != 1:
        raise ValueError(f"road.py: results of {sorted(tokens)} tokens cannot share a picture")
    lines = sentences(root, found)
    bars = bars_of(root, found)
    low, high = math.log10(min(bars.values())) - 0.35, math.log10(max(bars.values()))
    out, y, nodes, described = [], 58, [], []
    chapters = [page for page in order if page.chapter]
    for page in chapters:
        nodes.append((page.chapter, y))
        out.append(f'<text class="t" x="{LEFT + 22}" y="{y + 5}">{escape(page.label)}</text>')
        y += 23
        if page.chapter in lines:
            out.append(f'<text class="s q" x="{LEFT + 22}" y="{y + 3}">{escape(lines[page.chapter])}</text>')
            described.append(f"{page.label}: {lines[page.chapter]}")
            y += 22
        names = dict.fromkeys(name for name, _ in bars if chapter_of(name) == page.chapter)
        for name in names:
            out.append(f'<text class="s" x="{LEFT + 22}" y="{y + 9}">{escape(name)}</text>')
            for kind in KINDS:
                if (name, kind) not in bars:
                    continue
                seconds = bars[name, kind]
                length = (END - BARS) * (math.log10(seconds) - low) / (high - low)
                out.append(f'<rect class="{kind}" x="{BARS}" y="{y - 2}" width="{length:.1f}" height="14" rx="2"/>'
                           f'<text class="s" x="{BARS + length + 7:.1f}" y="{y + 10}">{time_text(seconds)}</text>')
                described.append(f"{name}, {KINDS[kind]}: {time_text(seconds)}")
                y += 18
            y += 3
        y += 17
    bottom = nodes[-1][1]
    machine = next(context["gpu"] for _, context in found.values() if context.get("gpu"))
    processor = next(iter(found.values()))[1]
    foot = ["Bars: attention's time, logarithmic.",
            f"In GPT-2: 124M, over {next(iter(tokens)):,} tokens. One call: {CALL['batch']} × {CALL['heads_q']} heads,",
            f"{CALL['head_dim']} channels, {CALL['len_q']:,} tokens, causal, in a warm L2 cache.",
            f"cuda: {machine}; cpu: the {processor['cores']} cores beside it."]
    key = "".join(f'<rect class="{kind}" x="{LEFT + 150 * i}" y="9" width="13" height="13" rx="2"/>'
                  f'<text class="s" x="{LEFT + 150 * i + 19}" y="20">{words}</text>' for i, (kind, words) in enumerate(KINDS.items()))
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 72}" width="{SHOWN}" role="img">\n<title>The road of the course</title>'
            f'<desc>{escape("; ".join(described))}</desc>\n<style>{STYLE}</style>\n'
            f'{key}\n'
            f'<line class="r" x1="{LEFT}" y1="{nodes[0][1]}" x2="{LEFT}" y2="{bottom}"/>')
    marks = [f'<circle class="c" cx="{LEFT}" cy="{at}" r="13"/><text class="n" x="{LEFT}" y="{at + 5}" text-anchor="middle">{number}</text>'
             for number, at in nodes]
    feet = [f'<text class="s q" x="{LEFT + 22}" y="{y + 2 + 19 * i}">{escape(line)}</text>' for i, line in enumerate(foot)]
    return "\n".join([head, *marks, *out, *feet, "</svg>"]) + "\n"


def main():
    try:
        fresh = draw()
    except (KeyError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if "--check" in sys.argv[1:]:
        if not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != fresh:
            print(f"{PICTURE.relative_to(ROOT)} is not what the results give; scripts/site/road.py draws it", file=sys.stderr)
            return 1
        print(f"{PICTURE.relative_to(ROOT)}: in step")
        return 0
    PICTURE.write_text(fresh, encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: drawn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
