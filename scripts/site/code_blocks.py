"""Code on the pages: coloured by Pygments, its names linked to the reference, its lines counted."""
import html
import xml.etree.ElementTree as ElementTree

from pygments.lexers import get_lexer_by_name
from pygments.lexers.special import TextLexer
from pygments.token import STANDARD_TYPES, Token
from pygments.util import ClassNotFound

LEXERS = {".h": "cpp", ".cpp": "cpp", ".cu": "cpp", ".cuh": "cpp", ".py": "python", ".sh": "bash", ".cmake": "cmake",
          ".json": "json", ".js": "javascript", ".css": "css", "CMakeLists.txt": "cmake"}
CUDA_WORDS = {"__global__", "__device__", "__host__", "__shared__", "__forceinline__", "__restrict__",
              "__launch_bounds__", "__syncthreads"}


def language_of(path):
    return LEXERS.get(path.name) or LEXERS.get(path.suffix, "text")


def lexer_of(language):
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False, ensurenl=False)


class Names:
    """Where the reference describes a name of the course. Names that stand for several things have no place."""

    def __init__(self, tag_file=None):
        places = {}
        if tag_file is not None:
            for compound in ElementTree.parse(tag_file).getroot():
                kind = compound.get("kind")
                if kind in ("class", "struct"):
                    name = compound.findtext("name").split("::")[-1]
                    if "<" not in name:
                        places.setdefault(name, set()).add(compound.findtext("filename"))
                if kind in ("group", "namespace"):
                    for member in compound.findall("member"):
                        if member.get("kind") in ("function", "enumeration", "typedef"):
                            address = f"{member.findtext('anchorfile')}#{member.findtext('anchor')}"
                            places.setdefault(member.findtext("name"), set()).add(address)
        # Overloads stand side by side: the first will do.
        self.places = {name: min(found) for name, found in places.items()
                       if len({address.split("#")[0] for address in found}) == 1}

    def address(self, name):
        return self.places.get(name)


def coloured_lines(text, language, names=None, root=""):
    """The lines as HTML. A token that spans lines is closed and opened anew at each end."""
    lines = [""]
    for kind, value in lexer_of(language).get_tokens(text):
        css = STANDARD_TYPES.get(kind, "")
        if value in CUDA_WORDS:
            css = "k"
        place = names and language == "cpp" and kind in Token.Name and names.address(value)
        for i, part in enumerate(value.split("\n")):
            if i:
                lines.append("")
            if not part:
                continue
            escaped = html.escape(part, quote=False)
            if place:
                escaped = f'<a class="api" href="{root}reference/{place}">{escaped}</a>'
            lines[-1] += f'<span class="{css}">{escaped}</span>' if css and css != "n" else escaped
    return lines


def block(text, language, caption="", names=None, root="", kind=""):
    """A fenced block."""
    if language in ("text", ""):
        body = html.escape(text.rstrip("\n"), quote=False)
    else:
        body = "\n".join(coloured_lines(text.rstrip("\n"), language, names, root))
    head = f'<span class="from">{caption}</span>' if caption else ""
    return f'<div class="code {kind}">{head}<pre><code>{body}</code></pre></div>\n'


def listing(text, language, names=None, root=""):
    """A whole file with numbered lines that can be linked to: #L12."""
    lines = coloured_lines(text.rstrip("\n"), language, names, root)
    body = "\n".join(f'<span class="line" id="L{n}"><a class="n" href="#L{n}">{n}</a>{line}</span>'
                     for n, line in enumerate(lines, 1))
    return f'<div class="code listing"><pre><code>{body}</code></pre></div>\n'
