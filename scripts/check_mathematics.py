#!/usr/bin/env python3
"""Finds formulas that GitHub would change before it sets them.

GitHub reads Markdown first and formulas second. A backslash before punctuation is an escape there and vanishes, so
that a thin space becomes a comma; and two underscores can be emphasis, by the rules of CommonMark (0.31.2, 2.4,
"Backslash escapes", and 6.2, "Emphasis and strong emphasis").

usage: check_mathematics.py [--root FOLDER]
exit status: 0; 1 if there is such a formula; 2 if there is no page
"""
import pathlib
import re
import string
import sys

from flags import Flags
from pages import INLINE_CODE, ROOT, fenced, pages_for

MATHEMATICS = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
ESCAPE = re.compile(r"\\[" + re.escape(string.punctuation) + "]")


def blocks(path):
    """(line number, text) of what stands between blank lines and is not code; code in a line becomes letters."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first, block = 1, []
    for n, (line, code) in enumerate(zip([*lines, ""], [*fenced(lines), False]), 1):
        if line.strip() and not code:
            first = first if block else n
            block.append(INLINE_CODE.sub(lambda m: "x" * len(m[0]), line))
        elif block:
            yield first, "\n".join(block)
            block = []


def emphasis(text):
    """Places of underscores that begin emphasis which another ends."""
    opened, found = [], []
    for match in re.finditer("_+", text):
        before, after = text[match.start() - 1:match.start()] or " ", text[match.end():match.end() + 1] or " "
        mark = lambda c: not (c.isalnum() or c.isspace())
        left = not after.isspace() and (not mark(after) or not before.isalnum())
        right = not before.isspace() and (not mark(before) or not after.isalnum())
        if right and (not left or mark(after)) and opened:
            found.append(opened[-1])
            opened = []
        elif left and (not right or mark(before)):
            opened.append(match.start())
    return found


def faults(path):
    """(line number, what is wrong) for a page."""
    for first, text in blocks(path):
        line_of = lambda at: first + text.count("\n", 0, at)
        formulas = list(MATHEMATICS.finditer(text))
        for formula in formulas:
            for escape in ESCAPE.finditer(text, *formula.span()):
                yield line_of(escape.start()), f"{escape[0]} loses its backslash in {' '.join(formula[0].split())}"
        for at in emphasis(text):
            for formula in formulas:
                if formula.start() <= at < formula.end():
                    yield line_of(at), f"an underscore begins emphasis in {' '.join(formula[0].split())}"


def main():
    parser = Flags(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    root = parser.parse_args().root.resolve()
    found = {f"{page.relative_to(root)}:{line}: {what}": None for page in pages_for(parser, root) for line, what in faults(page)}
    for fault in found:  # each once, in the order of the pages
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
