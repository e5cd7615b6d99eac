#!/usr/bin/env python3
"""Checks that the output.txt of each chapter is what its program prints today; --update rewrites it.

output.txt holds one or more commands with what they printed, as a terminal would show them:

    $ ch02_online_softmax --scores 1,3,2 --block 2
    …

Two runs never agree in everything: times differ, and with the vector unit the last bits of a sum. So

  - words must be the same, line by line, whatever the number of blanks between them;
  - numbers must be the same, with these exceptions:
      a number with a unit of time or rate behind it (3.2 ms, 88 GFLOP/s, 120 tokens/s) may be any;
      a number written with a negative exponent (3.1e-07), a rounding error, may be any of less than 1e-3;
      under "Checks", and under every heading that contains "measured", all numbers may be any;
  - a line "=> …" under a heading that contains "measured" draws a conclusion from what was measured there,
    and may say anything.

A line that starts with "Machine: " names the machine and the compiler of the run and may be any.

usage: check_outputs.py [--update] [--bin FOLDER] [CHAPTER...]         all that have a program by default
exit status: 0; 1 if an output is out of step or missing (and shows the difference), or a command fails
"""
import difflib
import pathlib
import re
import shlex
import subprocess
import sys

from flags import Flags
from pages import ROOT

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
UNIT = re.compile(r"\s?(?:(?:ns|us|ms|s|min)\b|[kMGTP]?i?[A-Za-z]*/s\b)")
TINY = "~0"  # stands for a rounding error
TIME_LIMIT = 1800  # seconds for one command


def masked_line(line, any_number):
    """The line with what may differ replaced by signs, and single blanks."""
    if line.startswith("Machine: "):
        return "Machine:"

    def mask(match):
        number = match.group()
        if any_number or UNIT.match(line, match.end()):
            return "#"
        if re.search(r"e-", number) and abs(float(number)) < 1e-3:
            return TINY
        return number
    line = NUMBER.sub(mask, line)
    # "0.95 ms" and "950 us" are the same kind of figure.
    line = re.sub(r"# ?(?:ns|us|ms|s|min)\b", "# time", line)
    line = re.sub(r"# ?[kMGTP]?i?([A-Za-z]*/s)\b", r"# \1", line)
    if re.fullmatch(r"[-\s]+", line):
        line = "---"  # a ruler is as long as its column is wide
    return " ".join(line.split())


def masked(text):
    """All lines, masked, with the knowledge of the heading that they stand under."""
    lines = text.splitlines()
    result, measured = [], False
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and line and re.fullmatch("=+", lines[i + 1]):
            measured = line == "Checks" or "measured" in line.lower()
            result.append(line)
        elif re.fullmatch("=+", line):
            result.append("===")
        else:
            measured = measured and not line.startswith("$ ")
            if measured and line.startswith("=> "):
                line = "=>"
            result.append(masked_line(line, measured))
    return result


def same(recorded, fresh):
    """Whether two masked lines agree. An error that is tiny here may be 0 there."""
    a, b = recorded.split(), fresh.split()
    return len(a) == len(b) and all(x == y or {x, y} == {TINY, "0"} for x, y in zip(a, b))


def difference(recorded, fresh, name):
    """A unified diff of two outputs, in which lines that agree count as equal. Empty: in step."""
    a, b = masked(recorded), masked(fresh)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    lines = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        if i2 - i1 == j2 - j1 and all(map(same, a[i1:i2], b[j1:j2])):
            continue
        lines += [f"{name}:{i1 + 1}:\n"]
        lines += [f"  - {line}\n" for line in recorded.splitlines()[i1:i2]]
        lines += [f"  + {line}\n" for line in fresh.splitlines()[j1:j2]]
    return "".join(lines)


def rerun(text, programs):
    """The text with every command's output replaced by what it prints now."""
    commands = [line for line in text.splitlines() if line.startswith("$ ")]
    if not text.startswith("$ "):
        raise RuntimeError("the first line must be a command, \"$ program …\"")
    fresh = []
    for command in commands:
        words = shlex.split(command[2:])
        words[0] = str(programs / pathlib.Path(words[0]).name)
        run = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=TIME_LIMIT)
        if run.returncode != 0:
            raise RuntimeError(f"{command}\nended with exit status {run.returncode}\n"
                               f"{run.stdout}{run.stderr}")
        fresh.append(f"{command}\n{run.stdout}")
    return "\n".join(fresh)


def main():
    parser = Flags(description="checks the recorded output of each chapter")
    parser.add_argument("--update", action="store_true", help="rewrite output.txt")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("chapters", nargs="*", help="numbers or folders, such as 02")
    arguments = parser.parse_args()

    failed = 0
    programs = sorted(arguments.bin.glob("ch[0-9][0-9]_*"))
    wanted = {pathlib.Path(chapter).name[:2] for chapter in arguments.chapters}
    checked = [p for p in programs if not wanted or p.name[2:4] in wanted]
    for program in checked:
        output = ROOT / "chapters" / program.name[2:] / "output.txt"
        name = output.relative_to(ROOT)
        try:
            if not output.exists() and not arguments.update:
                raise RuntimeError("missing; scripts/check_outputs.py --update writes it")
            recorded = output.read_text(encoding="utf-8") if output.exists() else f"$ {program.name}\n"
            fresh = rerun(recorded, arguments.bin.resolve())
            if arguments.update:
                output.write_text(fresh, encoding="utf-8")
                print(f"{name}: written")
            elif shown := difference(recorded, fresh, name):
                raise RuntimeError(f"out of step\n{shown}")
            else:
                print(f"{name}: in step")
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed += 1
    if not checked:
        print(f"no programs in {arguments.bin}", file=sys.stderr)
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
