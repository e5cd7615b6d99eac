#!/usr/bin/env python3
"""Draws results: time, rate, share of the bound or memory against T, as SVG.

Needs Python's standard library only, and writes the same bytes for the same results: no date, no random ids.
Text and axes have the page's colour (currentColor), so that a picture inlined in a page follows its theme;
shown as a file it follows the reader's. At the top edge, a length at which an implementation ran out of
memory has a cross, and one that it does not support a ring.

usage: plot.py [--quantity time|rate|share|memory] [--set NAME] [--cache warm|cold] [--without REGEX]
               [--title TEXT] -o FILE.svg RESULTS.json...
        several files, ours and those of peers, go into one picture; implementations of peers are dashed
"""
import argparse
import json
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

from flags import Flags

PLOT_WIDTH, HEIGHT = 540, 430
TOP, BOTTOM = 44, 52  # margins; the left one has the ticks' labels, the right one the lines' names
CHARACTER = 6.6  # the width of one, at most, on average
COLOURS = ["#2f7ed8", "#d9730d", "#1a9c72", "#c2447d", "#8a63d2", "#a08a00", "#c0392b", "#5f7d95"]
MARKERS = ["circle", "square", "diamond", "triangle"]
LABEL_HEIGHT = 15
MISSING = {"out_of_memory": "cross", "unsupported": "ring"}  # a row without a time, and its mark
STYLE = """text{fill:currentColor}.p{color:#24292f;font:13px Helvetica,Arial,sans-serif}
.g{stroke:currentColor;opacity:.16}.a{stroke:currentColor;opacity:.6}.l{fill:none;stroke-width:2}.h{font-weight:bold}
@media (prefers-color-scheme:dark){.p{color:#e6edf3}}"""


def si(value, unit):
    """1.5e-5, "s" -> "15 us"."""
    for factor, prefix in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u"),
                           (1e-9, "n")]:
        if abs(value) >= factor * 0.9999:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def binary(value):
    for factor, prefix in [(2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")]:
        if value >= factor:
            return f"{value / factor:.3g} {prefix}B"
    return f"{value:.3g} B"


QUANTITIES = {  # what a row gives, how a tick reads, whether the axis is logarithmic, its base, and its name
    "time": (lambda r: r["median_ms"] * 1e-3, lambda v: si(v, "s"), True, 10, "time of one call"),
    "rate": (lambda r: r["tflops"] * 1e12, lambda v: si(v, "FLOP/s"), False, 10, "rate"),
    "share": (lambda r: r["bound_share"] and 100 * r["bound_share"], lambda v: f"{v:.3g} %", False, 10, "share of the bound"),
    "memory": (lambda r: r["peak_bytes"], binary, True, 2, "memory: Q, K, V, O, LSE and scratch"),
}


def linear_ticks(high):
    step = 10.0 ** math.floor(math.log10(high / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 5.5)
    return [step * i for i in range(math.ceil(high / step) + 1)]


def logarithmic_ticks(low, high, base):
    first, last = math.floor(math.log(low, base) + 1e-9), math.ceil(math.log(high, base) - 1e-9)
    skip = max(1, math.ceil((last - first) / 8))
    return [float(base) ** e for e in range(first, last + skip, skip)]


def spread(wanted, low, high):
    """Moves label positions apart so that none covers another, keeping their order."""
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    at = [wanted[i] for i in order]
    for _ in range(200):
        for i in range(1, len(at)):
            overlap = LABEL_HEIGHT - (at[i] - at[i - 1])
            if overlap > 1e-6:
                at[i - 1] -= overlap / 2
                at[i] += overlap / 2
        at = [min(max(y, low), high) for y in at]
    placed = [0.0] * len(wanted)
    for position, i in enumerate(order):
        placed[i] = at[position]
    return placed


def marker(kind, x, y, colour):
    x0, y0 = f"{x:.1f}", f"{y:.1f}"
    if kind == "circle":
        return f'<circle cx="{x0}" cy="{y0}" r="3.6" fill="{colour}"/>'
    if kind == "ring":
        return f'<circle cx="{x0}" cy="{y0}" r="3.6" fill="none" stroke="{colour}" stroke-width="2"/>'
    points = {"square": [(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)],
              "diamond": [(0, -4.6), (4.6, 0), (0, 4.6), (-4.6, 0)],
              "triangle": [(0, -4.4), (4.2, 3.2), (-4.2, 3.2)],
              "cross": [(-4, -4), (4, 4), (0, 0), (-4, 4), (4, -4), (0, 0)]}[kind]
    path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in points)
    if kind == "cross":
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    return f'<polygon points="{path}" fill="{colour}"/>'


def series_of(documents, chosen_set, cache, without, value_of):
    """[(name, is_peer, {T: value}, {T: "out of memory" or "unsupported"})] in the order of the files."""
    found = {}
    for document in documents:
        peer = "peers" in document["context"]["program"]
        for row in document["rows"]:
            if row.get("set") != chosen_set or row.get("cache") != cache:
                continue
            name = row["implementation"]
            if without and re.search(without, name):
                continue
            _, values, missing = found.setdefault(name, (peer, {}, {}))
            if row["status"] == "ok" and value_of(row) is not None:
                values[row["len_q"]] = value_of(row)
            elif row["status"] in MISSING:
                missing[row["len_q"]] = row["status"].replace("_", " ")
    return [(name, *rest) for name, rest in found.items() if rest[1] or rest[2]]


def draw(series, quantity, title):
    _, label_of, logarithmic, base, axis_name = QUANTITIES[quantity]
    lengths = sorted({t for _, _, values, missing in series for t in [*values, *missing]})
    numbers = [v for _, _, values, _ in series for v in values.values()]
    ticks = logarithmic_ticks(min(numbers), max(numbers), base) if logarithmic else linear_ticks(max(numbers))
    bottom, top = HEIGHT - BOTTOM, TOP + 10
    labels = [", ".join([name, *sorted(set(missing.values()))]) for name, _, _, missing in series]
    left = 16 + CHARACTER * max(len(label_of(tick)) for tick in ticks)
    right = left + PLOT_WIDTH  # where the plot ends
    width = math.ceil(right + 20 + CHARACTER * max(map(len, labels)))
    def x_of(t):
        low, high = math.log2(lengths[0]), math.log2(lengths[-1])
        return left + 14 + (PLOT_WIDTH - 28) * ((math.log2(t) - low) / (high - low) if high > low else 0.5)
    def y_of(v):
        low, high = (math.log(ticks[0]), math.log(ticks[-1])) if logarithmic else (ticks[0], ticks[-1])
        return bottom - (bottom - top) * (((math.log(v) if logarithmic else v) - low) / (high - low or 1))

    described = "; ".join(f"{name}: " + ", ".join(
        [f"T={t} {label_of(v)}" for t, v in sorted(values.items())] +
        [f"T={t} {why}" for t, why in sorted(missing.items())])
        for name, _, values, missing in series)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" class="p" viewBox="0 0 {width} {HEIGHT}" role="img">',
           f"<title>{escape(title)}</title><desc>{escape(described)}</desc><style>{STYLE}</style>",
           f'<text class="h" x="{left:.1f}" y="22">{escape(title)}</text>']
    for tick in ticks:
        y = f"{y_of(tick):.1f}"
        out.append(f'<line class="g" x1="{left:.1f}" y1="{y}" x2="{right:.1f}" y2="{y}"/>'
                   f'<text x="{left - 8:.1f}" y="{float(y) + 4:.1f}" text-anchor="end" font-size="11.5">'
                   f"{label_of(tick)}</text>")
    out.append(f'<line class="a" x1="{left:.1f}" y1="{bottom}" x2="{right:.1f}" y2="{bottom}"/>')
    for t in lengths:
        out.append(f'<line class="a" x1="{x_of(t):.1f}" y1="{bottom}" x2="{x_of(t):.1f}" y2="{bottom + 5}"/>'
                   f'<text x="{x_of(t):.1f}" y="{bottom + 20}" text-anchor="middle">{t}</text>')
    out.append(f'<text x="{(left + right) / 2:.1f}" y="{HEIGHT - 12}" text-anchor="middle">'
               f"tokens T, and {escape(axis_name)}</text>")

    ends, stacked = [], {t: 0 for t in lengths}  # marks at the top edge, one below the other
    for i, (name, peer, values, missing) in enumerate(series):
        colour, kind = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        points = [(x_of(t), y_of(v)) for t, v in sorted(values.items())]
        marks = []
        for t, why in sorted(missing.items()):
            marks.append((MISSING[why.replace(" ", "_")], x_of(t), TOP + 10 * stacked[t]))
            stacked[t] += 1
        dashes = ' stroke-dasharray="6 4"' if peer else ""
        if len(points) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            out.append(f'<polyline class="l" points="{path}" stroke="{colour}"{dashes}/>')
        out += [marker(kind, x, y, colour) for x, y in points]
        out += [marker(mark, x, y, colour) for mark, x, y in marks]
        ends.append(marks[-1][1:] if marks else points[-1])
    placed = spread([y for _, y in ends], TOP, bottom)
    for i, (label, (x, y), at) in enumerate(zip(labels, ends, placed)):
        colour = COLOURS[i % len(COLOURS)]
        out.append(f'<line x1="{x + 6:.1f}" y1="{y:.1f}" x2="{right + 8:.1f}" y2="{at:.1f}" stroke="{colour}" '
                   f'opacity=".5"/><text x="{right + 12:.1f}" y="{at + 4:.1f}" font-size="11.5" '
                   f'style="fill:{colour}">{escape(label)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def picture(documents, quantity, chosen_set, cache, without=None, title=None):
    """(title, SVG). Raises ValueError if there is nothing to draw."""
    series = series_of(documents, chosen_set, cache, without, QUANTITIES[quantity][0])
    if not any(values for _, _, values, _ in series):
        raise ValueError(f"no timed row of set {chosen_set}, {cache}")
    context = documents[0]["context"]
    title = title or f"{QUANTITIES[quantity][4]}, {context.get('gpu') or context['machine']}"
    if documents[0].get("memory_limit_bytes"):
        title += f" with {binary(documents[0]['memory_limit_bytes'])}"
    title = title[0].upper() + title[1:]
    return title, draw(series, quantity, title)


def main():
    parser = Flags(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quantity", choices=list(QUANTITIES), default="time")
    parser.add_argument("--set", default="causal", help="the set of shapes, as --shapes of ch06_benchmark names it")
    parser.add_argument("--cache", choices=["warm", "cold"], default="cold")
    parser.add_argument("--without", help="leave out implementations whose name contains this")
    parser.add_argument("--title")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("results", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    try:
        documents = [json.loads(path.read_text(encoding="utf-8")) for path in arguments.results]
        _, svg = picture(documents, arguments.quantity, arguments.set, arguments.cache, arguments.without,
                         arguments.title)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    except ValueError as error:
        print(f"plot.py: {error}, in {', '.join(map(str, arguments.results))}", file=sys.stderr)
        return 1
    arguments.output.write_text(svg, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
