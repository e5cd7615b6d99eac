#!/usr/bin/env python3
"""Writes the course's site: pages from Markdown, listings of the sources, the reference, the search.

The site needs no network and no server: it is opened from disk. Warnings of Doxygen, markers that name nothing, dead
links inside the site and anything that would come from the network are errors.

usage: build.py SITE_FOLDER WORK_FOLDER
exit status: 0; 1 if there is a fault (the site is written all the same)
"""
import html
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import code_blocks  # noqa: E402
import contents  # noqa: E402
import links  # noqa: E402
import markdown_pages  # noqa: E402
import reference  # noqa: E402
import search_index  # noqa: E402
import widgets  # noqa: E402
from pages import ROOT  # noqa: E402

ASSETS = ROOT / "docs" / "site"
LISTED = ("chapters", "common")  # folders whose sources all get a listing; of others, what pages link to
SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".txt", ".cmake", ".json", ".py", ".sh"}


class Site:
    """The folder that is written, and what all pages of it share."""

    def __init__(self, folder, order, groups):
        self.folder, self.order, self.groups = folder, order, groups
        self.template = (ASSETS / "template.html").read_text(encoding="utf-8")

    def menu(self, current, root):
        """The contents, the page that is shown marked."""
        def item(address, label, number=""):
            here = ' aria-current="page"' if address == current else ""
            count = f'<span class="number">{number}</span>' if number else ""
            return f'<li><a href="{root}{address}"{here}>{count}{html.escape(label)}</a></li>'
        first = [p for p in self.order if not p.chapter and p.source.as_posix() in ("README.md", *contents.BEFORE)]
        chapters = [p for p in self.order if p.chapter]
        rest = [p for p in self.order if p not in first and p not in chapters]
        start = [item(p.address, "Start" if p.address == "index.html" else p.label) for p in first]
        return "\n".join([
            "<h2>The course</h2><ul>", *start, "</ul>",
            "<h2>Chapters</h2><ul>", *(item(p.address, p.label, p.chapter) for p in chapters), "</ul>",
            "<h2>Beside them</h2><ul>", *(item(p.address, p.label) for p in rest), "</ul>",
            "<h2>Reference</h2><ul>", item("reference/index.html", "All of it"),
            *(item(f"reference/group__{group}.html", title.split(". ")[-1],
                   int(group[2:]) if group[2:].isdigit() else "·") for group, title in self.groups), "</ul>"])

    def write(self, address, title, body, kind="", headings=(), scripts=(), styles=(), turn=""):
        """One page."""
        path = self.folder / address
        root = "../" * address.count("/")
        sections = [h for h in headings if h[0] in (2, 3)]
        toc = ""
        if len(sections) > 2:
            entries = "".join(f'<li{" class=deep" if level == 3 else ""}><a href="#{anchor}">{html.escape(plain)}</a></li>'
                              for level, anchor, _, plain in sections)
            toc = f'<nav id="toc" aria-label="On this page"><h2>On this page</h2><ul>{entries}</ul></nav>'
        values = {
            "title": html.escape(title if title.startswith("FlashAttention") else f"{title} · FlashAttention by hand"),
            "styles": "\n".join(f'<link rel="stylesheet" href="{root}{s}">' for s in [*styles, "site/course.css"]),
            "root": root, "page": html.escape(address), "menu": self.menu(address, root), "kind": kind,
            "content": body, "turn": turn, "toc": toc,
            "scripts": "\n".join(f'<script src="{root}{s}"></script>' for s in [*scripts, "site/course.js"])}
        # In one pass: what stands in braces in a page's own text is left alone.
        text = re.sub(r"\{(" + "|".join(values) + r")\}", lambda match: values[match[1]], self.template)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def turn_pages(order, i):
    """Links to the page before and after, at the foot."""
    parts = []
    if i > 0:
        parts.append(f'<a rel="prev" class="previous" href="{order[i - 1].address}"><small>Previous</small>'
                     f"{html.escape(order[i - 1].title)}</a>")
    if i + 1 < len(order):
        parts.append(f'<a rel="next" class="next" href="{order[i + 1].address}"><small>Next</small>'
                     f"{html.escape(order[i + 1].title)}</a>")
    return f'<nav class="turn" aria-label="Previous and next page">{"".join(parts)}</nav>'


def sources_of(root):
    """All files of the course's code, relative to the root."""
    found = set()
    for folder in LISTED:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in SOURCE_SUFFIXES) and path.stat().st_size < 200_000:
                found.add(path.relative_to(root))
    return found


def write_source(site, root, path, names, known):
    """The listing of a file, or of a folder."""
    address = f"source/{path.as_posix()}.html"
    up = "../" * address.count("/")
    full = root / path
    if full.is_dir():
        inside = sorted(p for p in known if p.parent == path)
        items = "".join(f'<li><a href="{up}source/{p.as_posix()}.html">{html.escape(p.name)}</a></li>' for p in inside)
        body = f"<h1>{html.escape(path.as_posix())}/</h1>\n<ul>{items}</ul>"
    else:
        text = full.read_text(encoding="utf-8", errors="replace")
        body = (f"<h1>{html.escape(path.name)}</h1>\n<p>{html.escape(path.as_posix())}</p>\n"
                + code_blocks.listing(text, code_blocks.language_of(path), names, up))
    site.write(address, path.name, body, kind="wide")


def copy_assets(folder):
    for name in ("course.css", "course.js", "katex", "widgets"):
        source, target = ASSETS / name, folder / "site" / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def build(folder, work, root=ROOT):
    """Writes the site; returns its faults as lines."""
    faults = []
    order, rest = contents.contents(root)
    groups, doxygen_faults = reference.run(sys.executable, work, order, root)
    if doxygen_faults:
        faults.append(f"Doxygen: {doxygen_faults} warnings")
    names = code_blocks.Names(work / "reference.tag")
    if not names.places:
        faults.append("the reference describes nothing: Doxygen read no source")
    site = Site(folder, order, groups)
    copy_assets(folder)

    renderer = markdown_pages.Renderer(root, {p.source.as_posix(): p.address for p in order + rest}, names)
    index = []
    for i, page in enumerate(order + rest):
        body, headings = renderer.render(page.source)
        scripts = ["site/katex/katex.min.js"] if 'class="math' in body else []
        used = [name for source, name in sorted(renderer.widgets) if source == page.source.as_posix()]
        wrong = [name for name in used if not widgets.is_known(name)]
        faults += [f"{page.source}: no widget is called \"{name}\"" for name in wrong]
        used = [name for name in used if name not in wrong and widgets.write_data(name, root, folder)]
        if used:
            scripts.append("site/widgets/frame.js")
            for name in used:
                scripts += [f"site/data/{name}.js", f"site/widgets/{name}.js"]
        site.write(page.address, page.title, body, "page", headings, scripts,
                   ["site/katex/katex.min.css"] if 'class="math' in body else [],
                   turn_pages(order, i) if i < len(order) else "")
        index += search_index.entries_of(page, body)

    for image in sorted(renderer.images):
        if not (root / image).is_file():
            faults.append(f"{image}: no such image")
            continue
        target = folder / "files" / image
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / image, target)
    known = sources_of(root)
    for path in sorted(known | renderer.sources):
        if (root / path).exists():
            write_source(site, root, path, names, known)
        else:
            faults.append(f"{path}: no such file")

    links_of_doxygen = reference.Links(work)
    for path in sorted((work / "html").iterdir()):
        if path.name.endswith("_source.html"):
            continue  # the site has listings of its own
        if path.suffix == ".html":
            title, body = reference.body_of(path.read_text(encoding="utf-8"))
            site.write(f"reference/{path.name}", title, links_of_doxygen.mended(path.name, body), "wide reference")
    index += search_index.entries_of_reference(names)
    (folder / "search-index.js").write_text(search_index.script(index), encoding="utf-8")
    site.write("search.html", "Search", '<h1>Search</h1>\n<div id="search-page"></div>', "page")
    return faults + links.faults_of(folder)


def main():
    folder, work = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)
    faults = build(fresh, work)
    # The finished site takes the place of the old one at once.
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(fresh, folder)
    for fault in faults:
        print(fault, file=sys.stderr)
    count = len(list(folder.rglob("*.html")))
    print(f"{folder / 'index.html'}: {count} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
