#!/usr/bin/env python3
"""Proves the checks of exercises: each invariant can be broken, and a fault is named by the invariant it belongs to.

For each exercise its solution, the code that the repository gives to readers, and every fault of faults.py are run;
a fault must break the invariant that the list names, and every invariant must be broken by a fault or by the code
that readers get. The chapter's page must link both. Faults are built by CMake, one of each exercise at a time, from a
header that this script writes.

usage: prove.py BUILD_FOLDER EXERCISE...        such as 02_merge_lse; solutions and exercises are built already
exit status: 0; 1 if something is not as it should be
"""
import os
import pathlib
import re
import subprocess
import sys

from faults import FAULTS

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Stale(Exception):
    """The solution no longer holds what a fault replaces."""


def folder_of(exercise):
    (folder,) = ROOT.glob(f"chapters/{exercise[:2]}_*/exercises")
    return folder


def faulty(exercise, original, replacement):
    """The solution with the fault in it."""
    path = folder_of(exercise) / f"{exercise[3:]}_solution.h"
    text = path.read_text(encoding="utf-8")
    if text.count(original) != 1:
        raise Stale(f"{exercise}: found {text.count(original)} times instead of once in "
                    f"{path.relative_to(ROOT)}:\n{original}")
    return text.replace(original, replacement)


def output_of(program):
    run = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return run.returncode, run.stdout


def broken_in(output):
    """The invariant that a run names, or nothing; nothing as well if it gives no hint."""
    found = re.search(r"^  broken  (.*)$", output, re.MULTILINE)
    return found.group(1) if found and re.search(r"^ +hint: ", output, re.MULTILINE) else None


def page_links(exercise, title):
    """What is wrong with the exercise's place on its chapter's page, where `title` begins "Exercise 4.5: "."""
    number = re.match(r"Exercise (\d+)\.(\d+): ", title)
    if not number or int(number[1]) != int(exercise[:2]):
        return f"its title is {title!r}"
    page = (folder_of(exercise).parent / "README.md").read_text(encoding="utf-8")
    section = page.split("\n## Exercises\n")[1].split("\n## ")[0]
    item = re.search(rf"^{number[2]}\. .*$", section, re.MULTILINE)
    name = exercise[3:]
    if not item or f"(exercises/{name}.h)" not in item[0] or f"(exercises/{name}_solution.h)" not in item[0]:
        return f"exercise {number[2]} of the chapter's page does not link it and its solution"
    return None


def main():
    build, exercises = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    problems, invariants, unbroken = [], {}, {}
    for exercise in exercises:
        status, output = output_of(build / "exercises" / f"solution_{exercise}")
        invariants[exercise] = re.findall(r"^  holds   (.*)$", output, re.MULTILINE)
        unbroken[exercise] = set(invariants[exercise])
        if status != 0 or broken_in(output):
            problems.append(f"{exercise}: the solution does not pass:\n{output}")
        if problem := page_links(exercise, output.split("\n")[0]):
            problems.append(f"{exercise}: {problem}")
        status, output = output_of(build / "exercises" / f"exercise_{exercise}")
        if status != 1 or broken_in(output) is None:
            problems.append(f"{exercise}, not solved, should end with status 1, a broken invariant and a hint; "
                            f"status {status}:\n{output}")
        unbroken[exercise].discard(broken_in(output))

    headers = build / "exercises" / "faults"
    headers.mkdir(parents=True, exist_ok=True)
    tried = 0
    for turn in range(max((len(FAULTS.get(exercise, [])) for exercise in exercises), default=0)):
        now = [exercise for exercise in exercises if turn < len(FAULTS.get(exercise, []))]
        for exercise in now:
            _, original, replacement = FAULTS[exercise][turn]
            (headers / f"{exercise}.h").write_text(faulty(exercise, original, replacement), encoding="utf-8")
        command = ["cmake", "--build", build, "--parallel", str(os.cpu_count()), "--target"]
        run = subprocess.run(command + [f"fault_{exercise}" for exercise in now], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        if run.returncode != 0:
            print(run.stdout, file=sys.stderr)
            return 1
        for exercise in now:
            expected, _, replacement = FAULTS[exercise][turn]
            status, output = output_of(build / "exercises" / f"fault_{exercise}")
            broken = broken_in(output)
            tried += 1
            if status != 1 or broken is None or not broken.startswith(expected):
                problems.append(f"{exercise} with the fault {replacement!r} should break {expected!r}; "
                                f"status {status}:\n{output}")
            unbroken[exercise].discard(broken)
    for exercise in exercises:
        problems += [f"{exercise}: no fault breaks {invariant!r}" for invariant in sorted(unbroken[exercise])]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    print(f"{len(exercises)} exercises: solutions pass, {sum(map(len, invariants.values()))} invariants can be broken, "
          f"{tried} faults are named")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stale as error:
        print(error, file=sys.stderr)
        sys.exit(1)
