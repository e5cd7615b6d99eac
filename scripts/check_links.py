#!/usr/bin/env python3
"""Finds dead links and missing images on the pages: links to files of the repository, and to headings.

Addresses on the network are not tried. Anchors follow GitHub's rule: the heading in lower case, without
punctuation, blanks as hyphens, "-1", "-2" … after the second and later ones of the same text.

usage: check_links.py [--root FOLDER]
exit status: 0; 1 if a link is dead; 2 if there is no page
"""
import pathlib
import re
import sys
import urllib.parse

from flags import Flags
from pages import INLINE_CODE, ROOT, fenced, pages_for

LINKS = [re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)"),  # [text](target "title")
         re.compile(r"(?:src|href)\s*=\s*[\"']([^\"']+)[\"']"),
         re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")]               # [label]: target
MATHEMATICS = re.compile(r"\$[^$\n]+\$")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = re.sub(r"[*~]|(?<!\w)_|_(?!\w)", "", text)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def prose(path):
    """(number, line) of what is not code."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(n, line) for n, (line, code) in enumerate(zip(lines, fenced(lines)), 1) if not code]


def anchors(path):
    """All anchors of a page: its headings', and those set by hand."""
    found, seen = set(), {}
    for _, line in prose(path):
        if match := HEADING.match(line):
            name = slug(match.group(1))
            seen[name] = seen.get(name, -1) + 1
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
        found.update(re.findall(r"<\w+[^>]*\s(?:id|name)=[\"']([^\"']+)[\"']", line))
    return found


def fault_of(target, page, root):
    """Why a link is dead; nothing if it is not."""
    if re.match(r"[a-zA-Z][\w+.-]*:|//", target):
        return None  # the network, or mail
    path_text, _, anchor = target.partition("#")
    path = page
    if path_text:
        base = root if path_text.startswith("/") else page.parent
        path = (base / urllib.parse.unquote(path_text).lstrip("/")).resolve()
        if not path.is_relative_to(root):
            return "leads out of the repository"
        if not path.exists():
            return "no such file"
    if anchor and path.suffix == ".md" and urllib.parse.unquote(anchor) not in anchors(path):
        return "no such heading"
    return None


def main():
    parser = Flags(description="finds dead links and missing images")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    root = parser.parse_args().root.resolve()
    count, faults = 0, []
    for page in pages_for(parser, root):
        for number, line in prose(page):
            line = MATHEMATICS.sub("", INLINE_CODE.sub("", line))
            for target in [t for pattern in LINKS for t in pattern.findall(line)]:
                count += 1
                if fault := fault_of(target, page, root):
                    faults.append(f"{page.relative_to(root)}:{number}: {target}: {fault}")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{count} links, {len(faults)} dead")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
