#!/usr/bin/env python3
"""Input filter of Doxygen: puts what a header declares into the group of its chapter, or of common/.

usage: group_filter.py FILE      prints the file, no line moved
"""
import pathlib
import re
import sys


def group_of(path):
    """ch02 for a file of chapters/02_…, chapters for one beside them, common for one of common/."""
    parts = pathlib.Path(path).parts
    if "chapters" in parts:
        folder = parts[len(parts) - 1 - parts[::-1].index("chapters") + 1]
        return f"ch{folder[:2]}" if folder[:2].isdigit() else "chapters"
    return "common"


def grouped(text, group):
    """The text with marks of the group: around the file, and inside each namespace, which would hide what it holds."""
    begin, end = f"/** @addtogroup {group} */ /** @{{ */", "/** @} */"
    text = re.sub(r"^((?:inline )?namespace [\w:]+ \{)$", rf"\1 {begin}", text, flags=re.M)
    text = re.sub(r"^(\}  // namespace [\w:]+)$", rf"{end} \1", text, flags=re.M)
    return f"{begin} {text}{end}\n"


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1])
    sys.stdout.buffer.write(grouped(source.read_text(encoding="utf-8"), group_of(source)).encode("utf-8"))
