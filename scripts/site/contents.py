"""What is on the site, and in which order: pages, their addresses, and the menu."""
import dataclasses
import pathlib
import re

from check_links import HEADING, prose
from pages import ROOT, pages

BEFORE = ["docs/reading.md"]
AFTER = ["docs/measuring.md", "docs/semantics.md", "docs/testing.md", "docs/glossary.md", "docs/sources.md"]


@dataclasses.dataclass
class Page:
    """One Markdown file and the page made of it."""
    source: pathlib.Path  # relative to the root
    address: str          # relative to the site's folder
    title: str
    chapter: int = 0      # 0: not a chapter

    @property
    def label(self):
        """The title without a chapter's number."""
        return re.sub(r"^\d+\. ", "", self.title)


def title_of(path):
    for _, line in prose(path):
        if match := HEADING.match(line):
            return match.group(1).replace("`", "")
    raise ValueError(f"{path}: no heading")


def page_of(root, source):
    path = pathlib.Path(source)
    chapter = re.fullmatch(r"chapters/((\d\d)_\w+)/README\.md", str(source))
    if str(source) == "README.md":
        address = "index.html"
    elif chapter:
        address = f"{chapter[1]}.html"
    elif path.name == "README.md":
        address = "_".join(path.parts[1:-1]) + ".html"
    else:
        address = f"{path.stem}.html"
    return Page(path, address, title_of(root / path), int(chapter[2]) if chapter else 0)


def contents(root=ROOT):
    """All pages: those with a place in the order, and the others, which only links reach."""
    every = [path.relative_to(root).as_posix() for path in pages(root)]
    chapters = sorted(p for p in every if re.fullmatch(r"chapters/\d\d_\w+/README\.md", p))
    order = ["README.md", *(p for p in BEFORE if p in every), *chapters, *(p for p in AFTER if p in every)]
    found = [page_of(root, p) for p in order]
    rest = [page_of(root, p) for p in every if p not in order]
    addresses = [page.address for page in found + rest]
    if twice := sorted({a for a in addresses if addresses.count(a) > 1}):
        raise ValueError(f"two pages would be {', '.join(twice)}")
    return found, rest
