"""Checks a finished site: every address inside it leads somewhere, and nothing comes from the network."""
import html.parser
import pathlib
import re
import urllib.parse

ADDRESS_ATTRIBUTES = {("a", "href"), ("link", "href"), ("img", "src"), ("script", "src"), ("form", "action"),
                      ("iframe", "src"), ("object", "data"), ("source", "src"), ("video", "src"), ("video", "poster"),
                      ("audio", "src"), ("track", "src"), ("embed", "src"), ("image", "href"), ("use", "href")}
STYLE_ADDRESS = re.compile(r"url\(\s*[\"']?([^)\"']+)|@import\s+[\"']([^\"']+)")


def addresses_in(style):
    """The addresses that a style sheet or a style attribute loads, those inside the file itself left out."""
    found = [(a or b).strip() for a, b in STYLE_ADDRESS.findall(style)]
    return [address for address in found if not address.startswith(("data:", "#"))]


class Reader(html.parser.HTMLParser):
    """The addresses and anchors of one page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.links, self.anchors = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif (tag, name) in ADDRESS_ATTRIBUTES and value:
                self.links.append((tag, value))
            elif name == "srcset" and value:
                self.links += [(tag, part.split()[0]) for part in re.split(r",\s+", value) if part.strip()]
            elif name == "style" and value:
                self.links += [("style", address) for address in addresses_in(value)]


def faults_of(site):
    """Dead addresses, as lines."""
    site = pathlib.Path(site).resolve()
    read = {}
    for path in sorted(site.rglob("*.html")):
        reader = Reader()
        reader.feed(path.read_text(encoding="utf-8"))
        read[path] = reader
    faults = []
    for path, reader in read.items():
        where = path.relative_to(site).as_posix()
        for tag, link in reader.links:
            if re.match(r"[a-zA-Z][\w+.-]*:|//", link):
                if tag != "a":
                    faults.append(f"{where}: {link}: comes from the network")
                continue
            address, _, anchor = link.partition("#")
            target = path if not address else (path.parent / urllib.parse.unquote(address.split("?")[0])).resolve()
            if not target.is_relative_to(site) or not target.is_file():
                faults.append(f"{where}: {link}: no such file")
            elif anchor and target in read and urllib.parse.unquote(anchor) not in read[target].anchors:
                faults.append(f"{where}: {link}: no such place on the page")
    for path in sorted(site.rglob("*.css")):
        for link in addresses_in(path.read_text(encoding="utf-8")):
            if not (path.parent / link.split("#")[0].split("?")[0]).is_file():
                faults.append(f"{path.relative_to(site)}: {link}: no such file")
    return faults
