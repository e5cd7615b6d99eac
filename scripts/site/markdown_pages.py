"""Markdown of the course as HTML. The dialect is GitHub's, where the same files are read: CommonMark, tables,
$mathematics$, ```math, > [!NOTE]. Comments that mark snippets, outputs and widgets become captions and frames.
"""
import html
import os
import pathlib
import re
import urllib.parse

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

import code_blocks
from check_links import slug
from embed import Wrong, region

NARROW = 500  # pictures up to this width need no room beyond a phone's
MARKER = re.compile(r"^<!--\s*(/?)(snippet|output|table|plot|widget)(?::\s*(.*?))?\s*-->\s*$")
ALERT = re.compile(r"^\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*")
EXTERNAL = re.compile(r"[a-zA-Z][\w+.-]*:|//")


class Renderer:
    """Renders one page after the other; collects the files that they link to.

    @param root      folder of the repository
    @param addresses page source, relative to the root, to address on the site
    @param names     code_blocks.Names
    """

    def __init__(self, root, addresses, names):
        self.root, self.addresses, self.names = root, addresses, names
        self.sources, self.images, self.widgets = set(), set(), set()
        self.markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        self.markdown.use(dollarmath_plugin, allow_labels=False, double_inline=True)

    def target(self, link, source):
        """Where a link of the page `source` leads on the site. Files become listings, folders their README's page
        or the listing of the folder."""
        if EXTERNAL.match(link) or link.startswith("#"):
            return link
        path_text, hash_sign, anchor = link.partition("#")
        decoded = urllib.parse.unquote(path_text)
        base = self.root / decoded.lstrip("/") if decoded.startswith("/") else self.root / source.parent / decoded
        path = pathlib.Path(os.path.normpath(base)).relative_to(self.root)
        if (self.root / path / "README.md").is_file():
            path = path / "README.md"
        if path.as_posix() in self.addresses:
            return self.addresses[path.as_posix()] + hash_sign + anchor
        if path.suffix in (".svg", ".png"):
            self.images.add(path)
            return f"files/{path.as_posix()}"
        self.sources.add(path)
        return f"source/{path.as_posix()}.html" + hash_sign + anchor

    def picture(self, image, address, source):
        """A drawing that is too wide to be read on a phone may be moved sideways there, in a box of its own."""
        path = self.root / source.parent / address
        drawn = re.search(r'viewBox="0 0 ([\d.]+) ', path.read_text(encoding="utf-8")) if path.suffix == ".svg" else None
        if not drawn or float(drawn[1]) <= NARROW:
            return image
        return f'<span class="picture" style="--drawn: {float(drawn[1]):.0f}px" tabindex="0">{image}</span>'

    def caption(self, kind, target):
        """The line above a snippet or an output: its file, linked, and its lines."""
        path_text, _, part = target.partition("#")
        path = pathlib.Path(path_text)
        self.sources.add(path)
        link = f'<a href="source/{path_text}.html{{}}">{html.escape(path_text)}</a>'
        if kind == "output":
            return link.format("") + (f": {html.escape(part)}" if part else "")
        if not part:
            return link.format("")
        lines = (self.root / path).read_text(encoding="utf-8").splitlines()
        try:
            region("\n".join(lines), part)
        except Wrong:
            return link.format("")
        at = [i for i, line in enumerate(lines, 1) if re.match(rf"^\s*(?://|#) \[{re.escape(part)}\]\s*$", line)]
        return link.format(f"#L{at[0] + 1}") + f", lines {at[0] + 1}–{at[1] - 1}"

    def render(self, source):
        """(HTML of the page's body, [(level, anchor, heading as HTML, its text)])"""
        text = (self.root / source).read_text(encoding="utf-8")
        tokens = self.markdown.parse(text)
        headings, seen, frames = [], {}, []
        out, opened = [], None
        inline = lambda token: self.inline(token.children, source)
        i = 0
        while i < len(tokens):
            token = tokens[i]
            if token.type == "html_block" and (match := MARKER.match(token.content.strip())):
                closing, kind, target = match.groups()
                opened = None if closing else (kind, target)
                if kind == "widget" and closing:
                    out.append("</div></figure>\n")
                elif kind == "widget":
                    self.widgets.add((source.as_posix(), target))
                    out.append(f'<figure class="widget" data-widget="{html.escape(target)}"><div class="fallback">\n')
            elif token.type == "html_block":
                out.append(self.raw(token.content, source))
            elif token.type == "fence":
                language = token.info.strip().split(" ")[0]
                if language == "math":
                    out.append(f'<div class="math display">{html.escape(token.content)}</div>\n')
                else:
                    kind, target = opened or ("", "")
                    caption = self.caption(kind, target) if kind in ("snippet", "output") else ""
                    out.append(code_blocks.block(token.content, language, caption, self.names,
                                          kind="output" if kind == "output" else ""))
            elif token.type == "code_block":
                out.append(code_blocks.block(token.content, "text"))
            elif token.type == "heading_open":
                content = tokens[i + 1]
                plain = self.plain(content.children)
                anchor = slug(content.content)
                seen[anchor] = seen.get(anchor, -1) + 1
                if seen[anchor]:
                    anchor = f"{anchor}-{seen[anchor]}"
                title = inline(content)
                level = int(token.tag[1])
                headings.append((level, anchor, title, plain))
                link = f'<a class="anchor" href="#{anchor}" aria-label="Link to this heading">#</a>' if level > 1 else ""
                out.append(f'<{token.tag} id="{anchor}">{title}{link}</{token.tag}>\n')
                i += 2
            elif token.type == "inline":
                out.append(inline(token))
            elif token.type == "blockquote_open":
                first = tokens[i + 2] if tokens[i + 1].type == "paragraph_open" else None
                alert = first and ALERT.match(first.content)
                if alert:
                    kind = alert[1].lower()
                    frames.append("div")
                    out.append(f'<div class="alert {kind}"><b class="kind">{kind.capitalize()}</b>\n')
                    first.children[0].content = ALERT.sub("", first.children[0].content)
                else:
                    frames.append("blockquote")
                    out.append("<blockquote>\n")
            elif token.type == "blockquote_close":
                out.append(f"</{frames.pop()}>\n")
            elif token.type == "table_open":
                out.append('<div class="table"><table>\n')
            elif token.type == "table_close":
                out.append("</table></div>\n")
            elif token.type in ("th_open", "td_open"):
                right = "right" in (token.attrs.get("style") or "")
                out.append(f"<{token.tag}{' class=right' if right else ''}>")
            elif token.type.startswith("math_block"):
                out.append(f'<div class="math display">{html.escape(token.content)}</div>\n')
            elif token.type in ("paragraph_open", "paragraph_close") and token.hidden:
                pass
            else:
                out.append(self.markdown.renderer.renderToken(tokens, i, self.markdown.options, {}))
            i += 1
        return "".join(out), headings

    def inline(self, children, source):
        out = []
        for i, token in enumerate(children):
            if token.type == "math_inline":
                out.append(f'<span class="math">{html.escape(token.content)}</span>')
            elif token.type in ("math_inline_double", "math_block"):
                out.append(f'<span class="math display">{html.escape(token.content)}</span>')
            elif token.type == "link_open":
                token.attrs["href"] = self.target(token.attrs["href"], source)
                if EXTERNAL.match(token.attrs["href"]):
                    token.attrs["rel"] = "noopener"
                out.append(self.markdown.renderer.renderToken(children, i, self.markdown.options, {}))
            elif token.type == "image":
                alt = html.escape(token.content)
                out.append(self.picture(f'<img src="{html.escape(self.target(token.attrs["src"], source))}" alt="{alt}">',
                                        token.attrs["src"], source))
            elif token.type == "html_inline":
                out.append(self.raw(token.content, source))
            elif hasattr(self.markdown.renderer, token.type):
                method = getattr(self.markdown.renderer, token.type)
                out.append(method(children, i, self.markdown.options, {}))
            else:
                out.append(self.markdown.renderer.renderToken(children, i, self.markdown.options, {}))
        return "".join(out)

    def raw(self, text, source):
        """HTML that stands in the page as such: its links and images follow the same rules."""
        return re.sub(r'\b(src|href)="([^"]+)"',
                      lambda m: f'{m[1]}="{html.escape(self.target(m[2], source))}"', text)

    @staticmethod
    def plain(children):
        return "".join(token.content for token in children
                       if token.type in ("text", "code_inline", "math_inline", "softbreak"))
