"""What the scripts that read the course's pages share: which pages there are, and where they hold code."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
INLINE_CODE = re.compile(r"(`+)(?:.*?[^`])?\1(?!`)")


def pages(root):
    """All Markdown files under `root`, without builds, downloads and hidden folders."""
    def ours(path):
        folders = path.relative_to(root).parts[:-1]
        return not any(f.startswith((".", "build")) or f == "models" for f in folders)
    return sorted(path for path in pathlib.Path(root).rglob("*.md") if ours(path))


def pages_for(parser, root, named=()):
    """The pages that a script's flags choose: those named, or else all under `root`. None is wrong usage: a check
    that looks at nothing must not pass."""
    for page in named:
        if not page.is_file():
            parser.error(f"{page}: no such page")
    chosen = named or pages(root)
    if not chosen:
        parser.error(f"--root {root}: no page is there")
    return chosen


def fenced(lines):
    """For each line, whether it belongs to a fenced code block, the fences included."""
    inside, result = None, []
    for line in lines:
        match = FENCE.match(line)
        if inside is None:
            inside = match.group(1) if match else None
            result.append(inside is not None)
        else:
            result.append(True)
            # A closing fence is at least as long as the opening one and has nothing after it.
            if match and match.group(1).startswith(inside) and not line.strip().strip(inside[0]):
                inside = None
    return result
