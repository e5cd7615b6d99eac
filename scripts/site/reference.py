"""The reference: Doxygen's pages in the site's frame, grouped by chapter."""
import pathlib
import re

import check_reference

GROUP_FILTER = pathlib.Path(__file__).resolve().parent / "group_filter.py"


def groups(root, pages):
    """[(group, title)]: one for each folder of chapters/ that holds headers, then what chapters share."""
    titles = {f"ch{page.chapter:02}": page.title for page in pages if page.chapter}
    found = []
    for folder in sorted((root / "chapters").glob("[0-9][0-9]_*")):
        if any(folder.glob("*.h")) or any(folder.glob("*.cuh")):
            group = f"ch{folder.name[:2]}"
            name = folder.name[3:].replace("_", " ")
            found.append((group, titles.get(group, f"{int(folder.name[:2])}. {name.capitalize()}")))
    return [*found, ("chapters", "The list of implementations"), ("common", "What chapters share")]


def definitions(found):
    """Doxygen's definitions of the groups, and the first page of the reference."""
    lines = [f"/** @defgroup {group} {title} */" for group, title in found]
    items = "\n".join(f"- @ref {group}" for group, _ in found)
    return "\n".join(lines) + f"""
/** @mainpage Reference
What the headers of the course declare, chapter by chapter:

{items}

The pages are made from the comments in the code. A function whose name says all of it has no comment. Shapes are
in brackets, as in [batch, head, token, dim], and sizes whose name ends in bytes are in bytes. A name in the code on
the other pages leads here.
*/
"""


def run(python, folder, pages, root):
    """Runs Doxygen into `folder`/html. Returns (groups, number of faults); prints the faults."""
    found = groups(root, pages)
    folder.mkdir(parents=True, exist_ok=True)
    stage = folder / "groups.dox"
    stage.write_text(definitions(found), encoding="utf-8")
    (folder / "header.html").write_text("<title>$title</title>\n<!--begin-->\n<div>\n", encoding="utf-8")
    (folder / "footer.html").write_text("<!--end-->\n", encoding="utf-8")
    extra = f"""
INPUT += "{stage}"
FILE_PATTERNS += *.dox
FILTER_PATTERNS = "*.h=\\"{python}\\" \\"{GROUP_FILTER}\\"" "*.cuh=\\"{python}\\" \\"{GROUP_FILTER}\\""
HTML_HEADER = "{folder}/header.html"
HTML_FOOTER = "{folder}/footer.html"
GENERATE_TAGFILE = "{folder}/reference.tag"
"""
    return found, check_reference.run(folder, extra)


def body_of(text):
    """(title, what Doxygen wrote between header and footer)"""
    title = re.search(r"<title>(.*?)</title>", text, re.S).group(1)
    content = text[text.index("<!--begin-->") + len("<!--begin-->"):text.index("<!--end-->")]
    return title, content


class Links:
    """Turns Doxygen's links to its own listings into links to the site's, and takes away those that it makes to
    places that it does not write."""

    SOURCE = re.compile(r'href="(\w+)_source\.html(?:#l0*(\d+))?"')
    LINK = re.compile(r'<a (?:class="[^"]*" )?href="([^"#]*)(?:#([^"]+))?"[^>]*>(.*?)</a>', re.S)

    def __init__(self, folder):
        self.anchors, self.files = {}, {}
        for page in (folder / "html").glob("*.html"):
            text = page.read_text(encoding="utf-8")
            if page.name.endswith("_source.html"):
                self.files[page.name.removesuffix("_source.html")] = body_of(text)[0].removesuffix(" Source File")
            else:
                self.anchors[page.name] = set(re.findall(r'(?:id|name)="([^"]+)"', text))

    def mended(self, name, text):
        def to_listing(match):
            path = self.files.get(match[1])
            line = f"#L{match[2]}" if match[2] else ""
            return f'href="../source/{path}.html{line}"' if path else match[0]

        def if_alive(match):
            page, anchor, label = match[1] or name, match[2], match[3]
            if page.startswith(("../", "http")):
                return match[0]
            dead = page not in self.anchors or (anchor and anchor not in self.anchors[page])
            return label if dead else match[0]
        return self.LINK.sub(if_alive, self.SOURCE.sub(to_listing, text))
