#!/usr/bin/env python3
"""Applies one deliberate fault to a copy of a source file.

mutate.py list
    One line for each mutant: name;unit;mutated file;implementation (what CMake builds).
mutate.py apply NAME SOURCE_DIR OUTPUT_DIR
    Writes the mutated file under OUTPUT_DIR, at its place in the tree. Fails unless the original
    text stands in the source exactly once: when the source moves on, so must the list.
mutate.py check SOURCE_DIR
    Tries all of them and names each that no longer applies.
"""

import pathlib
import sys

from mutations import MUTATIONS


class Stale(Exception):
    """The source no longer holds what the mutation replaces."""


def mutated_text(mutation, source_dir):
    path = pathlib.Path(source_dir) / mutation.file
    text = path.read_text(encoding="utf-8")
    found = text.count(mutation.original)
    if found != 1:
        raise Stale(
            f"mutation {mutation.name}: found {found} times instead of once in {mutation.file}:\n"
            f"{mutation.original}"
        )
    return text.replace(mutation.original, mutation.replacement)


def apply(name, source_dir, output_dir):
    (mutation,) = [m for m in MUTATIONS if m.name == name]
    target = pathlib.Path(output_dir) / mutation.file
    for other in pathlib.Path(output_dir).rglob("*"):  # of a time when it changed another file
        if other.is_file() and other != target:
            other.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(mutated_text(mutation, source_dir), encoding="utf-8")


def check(source_dir):
    names = [m.name for m in MUTATIONS]
    problems = [f"two mutations are called {n}" for n in sorted(set(names)) if names.count(n) > 1]
    for mutation in MUTATIONS:
        try:
            if mutated_text(mutation, source_dir) == "":
                problems.append(f"mutation {mutation.name} leaves nothing")
        except (Stale, OSError) as problem:
            problems.append(str(problem))
    return problems


def main(arguments):
    match arguments:
        case ["list"]:
            for m in MUTATIONS:
                print(f"{m.name};{m.unit};{m.file};{m.implementation}")
        case ["apply", name, source_dir, output_dir]:
            try:
                apply(name, source_dir, output_dir)
            except Stale as problem:
                print(problem, file=sys.stderr)
                return 1
        case ["check", source_dir]:
            problems = check(source_dir)
            print("\n".join(problems) or f"{len(MUTATIONS)} mutations apply")
            return 1 if problems else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
