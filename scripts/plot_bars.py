"""Draws what a ladder's program measured as bars, as SVG: predicted and measured rates of its steps, and what each idea
is worth by the time without it. The same results give the same bytes.
"""
import math
from xml.sax.saxutils import escape

from plot import CHARACTER, linear_ticks

LONGEST, ROW = 300, 24  # the longest bar; the height of a bar's row
STYLE = """text{fill:currentColor}.p{color:#24292f;font:13px Helvetica,Arial,sans-serif}.h{font-weight:bold}.s{font-size:11.5px}
.g{stroke:currentColor;opacity:.16}.a{stroke:currentColor;opacity:.6}.m{fill:#2f7ed8}.slow{fill:#d9730d}.fast{fill:#1a9c72}
.w{fill:none;stroke:currentColor;stroke-width:1.3;stroke-dasharray:4 3}
@media (prefers-color-scheme:dark){.p{color:#e6edf3}}"""


def frame(title, described, width, height, out):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" class="p" viewBox="0 0 {math.ceil(width)} {height}" role="img">',
                      f"<title>{escape(title)}</title><desc>{escape(described)}</desc><style>{STYLE}</style>", *out, "</svg>"]) + "\n"


def shape_of(row):
    return f"B{row['batch']} H{row['heads_q']} d{row['head_dim']} {row['dtype']}{', causal' if row['causal'] else ''}"


def steps_of(document, length):
    """The steps of a ladder at a length, in the order of the results: rows that were timed and predicted."""
    rows = [row for row in document["rows"]
            if row.get("status") == "ok" and row.get("predicted_ms") and row.get("median_ms") and row["len_q"] == length]
    if not rows:
        raise ValueError(f"no step was measured at T = {length}")
    return rows


def ladder(document, length):
    """(title, SVG): a filled bar for the measured rate of each step, a dashed one for the predicted rate."""
    rows = steps_of(document, length)
    names = [row["implementation"].removeprefix("cuda_") for row in rows]
    predicted = [row["tflops"] * row["median_ms"] / row["predicted_ms"] for row in rows]
    title = f"The steps at T = {length:,}, {document['context']['gpu']}"
    left, top = 22 + CHARACTER * max(map(len, names)), 78
    ticks = linear_ticks(max([*predicted, *(row["tflops"] for row in rows)]))
    scale = LONGEST / ticks[-1]
    bottom = top + 2 * ROW * len(rows) - 8
    clocks = [row["clock_mhz"] for row in rows]
    out = [f'<text class="h" x="14" y="22">{escape(title)}</text>', f'<text class="s" x="14" y="40">{shape_of(rows[0])}, '
           f"warm L2, clock {min(clocks):.0f} to {max(clocks):.0f} MHz</text>",
           '<rect class="m" x="14" y="51" width="22" height="12"/><text class="s" x="42" y="61">measured</text>',
           '<rect class="w" x="110" y="51" width="22" height="12"/><text class="s" x="138" y="61">predicted, TFLOP/s</text>']
    for tick in ticks:
        x = left + tick * scale
        out.append(f'<line class="g" x1="{x:.1f}" y1="{top - 6}" x2="{x:.1f}" y2="{bottom}"/>'
                   f'<text class="s" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:.0f}</text>')
    for i, (row, name, rate) in enumerate(zip(rows, names, predicted)):
        y = top + 2 * ROW * i
        out.append(f'<text x="{left - 8:.1f}" y="{y + 23}" text-anchor="end">{escape(name)}</text>'
                   f'<rect class="m" x="{left:.1f}" y="{y}" width="{row["tflops"] * scale:.1f}" height="16"/>'
                   f'<text class="s" x="{left + row["tflops"] * scale + 6:.1f}" y="{y + 12}">{row["tflops"]:.0f}</text>'
                   f'<rect class="w" x="{left:.1f}" y="{y + 19}" width="{rate * scale:.1f}" height="12"/>'
                   f'<text class="s" x="{left + rate * scale + 6:.1f}" y="{y + 29}">{rate:.0f}</text>')
    described = "; ".join(f"{name}: measured {row['tflops']:.0f} TFLOP/s, predicted {rate:.0f}"
                          for row, name, rate in zip(rows, names, predicted))
    return title, frame(title, described, left + LONGEST + 44, bottom + 26, out)


def variants_of(document, length, head_dim):
    """[(variant, its time over that of the kernel as it is, which comes first)]. Rows that do not say for how many channels they
    are were measured when there were variants for 64 alone."""
    rows = [row for row in document.get("ablations", []) if row.get("head_dim", 64) == head_dim and row.get(f"T{length}")]
    if not rows:
        raise ValueError(f"no variant was measured at T = {length}, d{head_dim}")
    whole = rows[0][f"T{length}"]
    return [(row["variant"], whole / row[f"T{length}"]) for row in rows]


def ablations(document, length, head_dim=64):
    """(title, SVG): for each variant a bar from the time of the kernel as it is, to the right if it is slower."""
    (reference, _), *variants = variants_of(document, length, head_dim)
    if not variants:
        raise ValueError(f"no variant but {reference} was measured at T = {length}, d{head_dim}")
    title = f"Time without one idea, or with one more, d{head_dim}, T = {length:,}"
    changes = [time - 1 for _, time in variants]
    low, high = min(0.0, *changes), max(0.0, *changes)
    left = 22 + CHARACTER * max(len(name) for name, _ in variants)
    room = 46  # for a figure beside a bar
    scale = LONGEST / ((high - low) or 1)
    zero, top = left + room - low * scale, 64
    bottom = top + ROW * len(variants)
    out = [f'<text class="h" x="14" y="22">{escape(title)}</text>', f'<text class="s" x="14" y="40">{escape(document["context"]["gpu"])}. '
           f"The line is {escape(reference)}; to the right, slower.</text>"]
    for i, ((name, _), change) in enumerate(zip(variants, changes)):
        y = top + ROW * i
        begin, end = sorted([zero, zero + change * scale])
        beside = f'x="{end + 6:.1f}"' if change >= 0 else f'x="{begin - 6:.1f}" text-anchor="end"'
        out.append(f'<text class="s" x="{left:.1f}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
                   f'<rect class="{"slow" if change >= 0 else "fast"}" x="{begin:.1f}" y="{y}" width="{end - begin:.1f}" height="16"/>'
                   f'<text class="s" {beside} y="{y + 12}">{signed(change)}</text>')
    out.append(f'<line class="a" x1="{zero:.1f}" y1="{top - 6}" x2="{zero:.1f}" y2="{bottom}"/>')
    described = "; ".join(f"{name}: {signed(change)}" for (name, _), change in zip(variants, changes))
    return title, frame(title, described, left + 2 * room + LONGEST + 14, bottom + 8, out)


def signed(change):
    """0.123 -> "+12 %"; what rounds to nothing has no sign."""
    percent = round(100 * change)
    return f"{percent:+d} %".replace("-", "−") if percent else "0 %"
