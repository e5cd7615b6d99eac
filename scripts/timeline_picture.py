"""Draws the beginning of chapter 9's timeline, of every schedule, as SVG: the still picture beside the one that moves.

The same data give the same bytes. Letters, stripes for waits and a legend: colour alone tells nothing.
"""
from xml.sax.saxutils import escape

import timeline_data
from timeline_data import PHASES

WIDTH, LEFT, END = 490, 96, 476  # END: where the window ends
LANE, BAR, HEAD = 21, 17, 27
CHANGES = 26  # how many changes of its lanes a schedule shows
STYLE = """text{fill:#24292f;font:12px Helvetica,Arial,sans-serif}.h{font-weight:bold}.q{fill:#57606a}.rule{stroke:#8c959f;stroke-width:1}
.grey{fill:#8c959f}.purple{fill:#8250a8}.orange{fill:#e8834f}.blue{fill:#6aa9f0}.green{fill:#66b87c}.gold{fill:#c4b243}.faint{fill:none}.paper{fill:#fff}
.w{paint-order:stroke;stroke:#fff;stroke-width:3px}
.box{fill:none;stroke:#8c959f;stroke-width:.6}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#98a1ac}.grey{fill:#7d8590}.purple{fill:#d2a8ff}.orange{fill:#a8541f}.blue{fill:#2a62a8}
.green{fill:#2a7a3e}.gold{fill:#7d6d00}.paper{fill:#14171c}.w{stroke:#14171c}}"""
WAYS = {"grey": 45, "purple": -45, "orange": 45, "faint": 45}  # of stripes


def bar(x, y, width, number):
    """A phase: filled if it is work, striped if it waits."""
    _, letter, colour, waits = PHASES[number]
    paint = f'fill="url(#{colour})"' if waits else f'class="{colour}"'
    out = f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" {paint}/>'
    if waits:
        out += f'<rect class="box" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}"/>'
    if width >= 10:
        style = "w" if waits else "h"
        out += f'<text x="{x + width / 2:.1f}" y="{y + 12.5}" text-anchor="middle" class="{style}">{letter}</text>'
    return out


def legend(y):
    out = []
    for i, (name, *_) in enumerate(PHASES):
        x, row = 14 + 160 * (i % 3), y + 24 * (i // 3)
        out.append(bar(x, row, 16, i) + f'<text x="{x + 21}" y="{row + 12.5}">{escape(name)}</text>')
    return out


def picture(source, machine=None):
    """(title, SVG) of timeline_data.compact()'s short form.

    @param machine where it was measured; an order of the executor needs none"""
    lanes_of = timeline_data.schedules(source)
    order = timeline_data.is_order(source)
    last = 0  # of the window: every schedule shows CHANGES changes, or all it has
    for lanes in lanes_of.values():
        changes = sorted({at for _, events in lanes for _, _, begin, end in events for at in (begin, end)})
        last = max(last, changes[min(CHANGES, len(changes) - 1)])
    scale = (END - LEFT) / (last or 1)
    title = "What the warpgroups do when, " + ("in order, not in time" if order else "measured")
    notes = ([f"Recorded on the CPU executor, {source['problem']}.",
              "Each change stands one step after the one before: lengths mean nothing."] if order else
             [f"{machine}, {source['problem']}: the first {last:,} cycles."])
    out = [f'<text class="h" x="14" y="20" style="font-size:14px">{escape(title)}</text>']
    out += [f'<text class="q" x="14" y="{38 + 16 * i}">{escape(note)}</text>' for i, note in enumerate(notes)]
    y = 38 + 16 * len(notes) - 4
    out += legend(y)
    y += 80
    for name, lanes in lanes_of.items():
        out.append(f'<text class="h" x="14" y="{y + 15}">{escape(name)}</text>')
        y += HEAD - 4
        for lane, events in lanes:
            out.append(f'<text x="14" y="{y + 12.5}">warpgroup {lane["warpgroup"]}</text>')
            for number, _, begin, end in events:
                if end > begin and begin < last:
                    width = (min(end, last) - begin) * scale
                    out.append(bar(LEFT + begin * scale, y, max(0.4, width - (0.8 if width > 4 else 0)), number))
            y += LANE
        y += 7
    patterns = "".join(f'<pattern id="{colour}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate({way})">'
                       f'<rect class="paper" width="6" height="6"/><rect class="{colour}" width="2" height="6"/></pattern>'
                       for colour, way in WAYS.items())
    described = "; ".join(f"{name}: " + ", ".join(f"{PHASES[i][0]} {100 * s:.1f} %" for i, s in enumerate(parts))
                          for name, parts in timeline_data.shares(source).items())
    return title, "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 4}" role="img">', f"<title>{escape(title)}</title>",
        f'<desc>Shares of all {"turns" if order else "cycles"}: {escape(described)}</desc><style>{STYLE}</style><defs>{patterns}</defs>',
        *out, "</svg>"]) + "\n"
