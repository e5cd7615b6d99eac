"""The index of the search: a list of places with their text, as a script that a page read from disk can load."""
import html.parser
import json
import re


def words_of(formula):
    """A formula as one would type it into a search: without TeX's marks."""
    plain = re.sub(r"\\(?:text|mathrm|operatorname|left|right|frac|tfrac)\b", " ", formula)
    return re.sub(r"[\\{}$]", "", plain)


class Sections(html.parser.HTMLParser):
    """Cuts a page's body at its headings."""

    LEFT_OUT = {"script", "style", "svg", "button"}

    def __init__(self, title):
        super().__init__(convert_charrefs=True)
        self.sections = [["", title, []]]  # anchor, heading, pieces of text
        self.in_heading, self.in_anchor, self.skipped = False, False, 0
        self.in_mathematics = None  # the tag that ends it

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in self.LEFT_OUT:
            self.skipped += 1
        elif tag in ("h2", "h3", "summary"):
            self.in_heading = True
            anchor = attributes.get("id") or self.sections[-1][0]
            self.sections.append([anchor, "", []])
        elif tag == "a" and attributes.get("class") == "anchor":
            self.in_anchor = True
        elif "math" in (attributes.get("class") or "").split():
            self.in_mathematics = tag

    def handle_endtag(self, tag):
        if tag == self.in_mathematics:
            self.in_mathematics = None
        if tag in self.LEFT_OUT:
            self.skipped -= 1
        elif tag in ("h2", "h3", "summary"):
            self.in_heading = False
        elif tag == "a":
            self.in_anchor = False
        if tag in ("p", "li", "td", "th", "pre", "div", "h1"):
            self.sections[-1][2].append(" ")

    def handle_data(self, data):
        if self.skipped or self.in_anchor:
            return
        if self.in_mathematics:
            data = words_of(data)
        if self.in_heading:
            self.sections[-1][1] += data
        else:
            self.sections[-1][2].append(data)


def entries_of(page, body):
    """[{title, page, url, text, kind}] of a page of the course."""
    reader = Sections(page.title)
    reader.feed(body)
    entries = []
    for anchor, heading, pieces in reader.sections:
        text = re.sub(r"\s+", " ", "".join(pieces)).strip()
        if text or heading:
            entries.append({"title": heading.strip(), "page": page.title, "kind": "page", "text": text,
                            "url": page.address + (f"#{anchor}" if anchor else "")})
    return entries


def entries_of_reference(names):
    """One entry for each name that the reference describes."""
    return [{"title": name, "page": "Reference", "kind": "reference", "text": "", "url": f"reference/{place}"}
            for name, place in sorted(names.places.items())]


def script(entries):
    # "</" would end a script if the index were ever put inside a page.
    return "window.COURSE_INDEX = " + json.dumps(entries, ensure_ascii=False, separators=(",", ":")).replace(
        "</", "<\\/") + ";\n"
