#!/usr/bin/env python3
"""Keeps code, program output and tables on the pages in step with their sources.

A page holds markers, each alone on its line. What stands between a pair is written by this script:

    <!-- snippet: chapters/02_online_softmax/online_softmax.h#update -->     <!-- /snippet -->
        the lines between two lines "// [update]" of that file (in Python, shell and CMake "# [update]"),
        without common indentation and without the markers of other regions; the whole file without "#…"
    <!-- output: chapters/02_online_softmax/output.txt#The same with V -->    <!-- /output -->
        the part of a program's output under that underlined heading; the whole file without "#…"
    <!-- table: docs/results/some.json#rows -->                              <!-- /table -->
        the list of objects under that key as a table, one row each, in the order of the first one's keys;
        or a view of results, of several files together: scripts/result_tables.py lists the views
    <!-- table: docs/results/h200/benchmark.json docs/results/h200/peers.json#rate causal cold --> <!-- /table -->
    <!-- plot: docs/results/h200/benchmark.json#time causal cold docs/img/06-time.svg -->      <!-- /plot -->
        a picture of results (scripts/plot.py): quantity, set of shapes, cache state, the file it is drawn into;
        the file is written along with the page, and --check compares it, too
    <!-- plot: docs/results/h200/ch09_hopper.json#ladder 4096 docs/img/09-ladder.svg -->   <!-- /plot -->
        the same for other pictures: result_tables.picture() lists them
    <!-- diff: chapters/04_x/a.h chapters/05_y/b.h -->                       <!-- /diff -->
        what changes from the first file to the second, with a line before and after

Paths are relative to the repository's root. Markers inside fenced code blocks are left alone.

usage: embed.py [--check] [--root FOLDER] [PAGE...]        all pages by default
exit status: 0; 1 if --check finds a page out of step (and shows the difference) or a marker is wrong; 2 if there is
no such page
"""
import difflib
import json
import os
import pathlib
import re
import sys
import textwrap

import result_tables
from flags import Flags
from pages import ROOT, fenced, pages_for

MARKER = re.compile(r"^\s*<!--\s*(/?)(snippet|output|table|plot|diff)(?::\s*(.*?))?\s*-->\s*$")
LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".cu": "cpp", ".cuh": "cpp", ".py": "python", ".sh": "bash",
             ".cmake": "cmake", ".json": "json", "CMakeLists.txt": "cmake"}


class Wrong(Exception):
    """A marker that cannot be served; the message says why."""


def region(text, name):
    """The lines between the two markers of region `name`."""
    marker = re.compile(r"^\s*(?://|#) \[([\w-]+)\]\s*$")
    names = [match and match.group(1) for match in map(marker.match, text.splitlines())]
    at = [i for i, found in enumerate(names) if found == name]
    if len(at) != 2:
        known = ", ".join(sorted({n for n in names if n})) or "none"
        raise Wrong(f"region [{name}] is marked {len(at)} times, must be 2 (regions: {known})")
    lines = text.splitlines()
    kept = [lines[i] for i in range(at[0] + 1, at[1]) if names[i] is None]
    return textwrap.dedent("\n".join(kept)).strip("\n")


def section(text, heading):
    """The part of a program's output under an underlined heading, the heading included."""
    lines = text.splitlines()
    starts = [i for i in range(len(lines) - 1)
              if lines[i] and re.fullmatch("=+", lines[i + 1])]
    at = [i for i in starts if lines[i] == heading]
    if len(at) != 1:
        known = ", ".join(f'"{lines[i]}"' for i in starts) or "none"
        raise Wrong(f"heading \"{heading}\" is there {len(at)} times, must be 1 (headings: {known})")
    end = min((i for i in starts if i > at[0]), default=len(lines))
    return "\n".join(lines[at[0]:end]).strip("\n")


def table(text, key):
    """A list of objects as a Markdown table, numbers flush right with four significant digits."""
    rows = json.loads(text).get(key)
    if not isinstance(rows, list) or not rows:
        raise Wrong(f"\"{key}\" is no list with rows")
    columns = list(rows[0])

    def cell(value):
        if isinstance(value, float):
            value = f"{value:.4g}"
        return str("" if value is None else value).replace("|", "\\|")

    def is_number(column):
        return all(isinstance(row.get(column), (int, float, type(None))) for row in rows)
    lines = [columns, ["--:" if is_number(column) else "---" for column in columns]]
    lines += [[cell(row.get(column)) for column in columns] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def changes(old, new, old_name, new_name):
    """A unified diff of two texts with one line of context and without line numbers."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, n=1, lineterm="")
    return "\n".join("@@" if line.startswith("@@ ") else line for line in lines)


def in_fence(content, language):
    """A fenced code block, its fence longer than any in the content."""
    longest = max((len(run) for run in re.findall(r"^\s*(`{3,})", content, re.M)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def content_of(kind, target, root):
    """What belongs between the markers of `kind: target`."""
    if kind == "diff":
        names = target.split()
        if len(names) != 2:
            raise Wrong("names no two files")
        if missing := [name for name in names if not (root / name).is_file()]:
            raise Wrong(f"no file {missing[0]}")
        return in_fence(changes(*((root / name).read_text(encoding="utf-8") for name in names), *names), "diff")
    path_text, _, part = target.partition("#")
    if kind == "table" and part and part.split()[0] in result_tables.VIEWS:
        return result_tables.table(root, path_text.split(), part)
    path = root / path_text
    if not path.is_file():
        raise Wrong(f"no file {path_text}")
    text = path.read_text(encoding="utf-8")
    if kind == "table":
        return table(text, part or "rows")
    if kind == "output":
        return in_fence(section(text, part) if part else text.strip("\n"), "text")
    language = LANGUAGES.get(path.name) or LANGUAGES.get(path.suffix, "text")
    return in_fence(region(text, part) if part else text.strip("\n"), language)


def plotted(target, root, folder, pictures):
    """An image on a page in `folder`; its file goes into `pictures`."""
    path_text, _, part = target.partition("#")
    *words, file = part.split() or [""]
    drawn = result_tables.picture(root, path_text.split(), words)
    if drawn is None:
        return result_tables.NOTHING
    title, pictures[file] = drawn
    return f"![{title}]({os.path.relpath(root / file, folder)})"


def refreshed(text, root, folder=None, pictures=None):
    """The page in `folder` with fresh contents, and its faults as (line number, message). Collects the files
    of pictures and their contents in `pictures`."""
    lines, faults, out = text.splitlines(), [], []
    in_code = fenced(lines)
    opened = None  # (line number, kind, target) of the pair that we are in
    for number, line in enumerate(lines, 1):
        match = MARKER.match(line)
        # Our own contents are fenced too, but what stands inside a pair is dropped anyway.
        if opened is None and (not match or in_code[number - 1]):
            out.append(line)
            continue
        if not match or (opened and in_code[number - 1]):
            continue
        closing, kind, target = match.groups()
        if opened is None and closing:
            faults.append((number, f"closing marker /{kind} without an opening one"))
            out.append(line)
        elif opened is None:
            opened = (number, kind, target)
            out.append(line)
            try:
                if not target:
                    raise Wrong("names no file")
                if kind == "plot":
                    out.append(plotted(target, root, folder or root, {} if pictures is None else pictures))
                else:
                    out.append(content_of(kind, target, root))
            except (Wrong, ValueError) as error:
                faults.append((number, f"{kind} {target}: {error}"))
        elif closing and kind == opened[1]:
            opened = None
            out.append(line)
        else:
            break
    if opened:
        faults.append((opened[0], f"{opened[1]} {opened[2]}: marker is not closed"))
    return "\n".join(out) + "\n", sorted(faults)


def main():
    parser = Flags(description="keeps code and output on the pages in step")
    parser.add_argument("--check", action="store_true", help="change nothing, show what would change")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    root = arguments.root.resolve()

    failed, changed = False, 0
    for page in pages_for(parser, root, arguments.pages):
        page = page.resolve()
        name = page.relative_to(root).as_posix() if page.is_relative_to(root) else str(page)
        text = page.read_text(encoding="utf-8")
        pictures = {}
        fresh, faults = refreshed(text, root, page.parent, pictures)
        for number, message in faults:
            print(f"{name}:{number}: {message}", file=sys.stderr)
        if faults:  # a page with a wrong marker is left as it is
            failed = True
        elif fresh != text:
            changed += 1
            if arguments.check:
                failed = True
                sys.stdout.writelines(difflib.unified_diff(
                    text.splitlines(True), fresh.splitlines(True), name, f"{name} (fresh)"))
            else:
                page.write_text(fresh, encoding="utf-8")
                print(f"{name}: refreshed")
        for file, content in ({} if faults else pictures).items():
            path = root / file
            if path.is_file() and path.read_text(encoding="utf-8") == content:
                continue
            changed += 1
            if arguments.check:
                failed = True
                print(f"{name}: {file} is not what the results give")
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
                print(f"{file}: drawn")
    if arguments.check and changed:
        print(f"{changed} pages are out of step; scripts/embed.py refreshes them", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
