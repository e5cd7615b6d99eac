#!/usr/bin/env python3
"""Prints the summary that closes scripts/run.sh: chapter, what it showed, checks, time.

usage: summary.py FOLDER    with NAME.status ("exit-status nanoseconds") and NAME.json of each program
"""
import json
import pathlib
import sys
import textwrap

SHOWN_WIDTH = 54  # columns for what a chapter shows; longer text goes on in the next line


def chapter(status_file):
    """One chapter's lines of the table, what failed, and whether all is well."""
    status, nanoseconds = map(int, status_file.read_text().split())
    name = status_file.stem
    results = status_file.with_suffix(".json")
    checks, shown, failed = [], "", []
    if results.exists():
        document = json.loads(results.read_text(encoding="utf-8"))
        checks, shown = document["checks"], document["context"]["description"]
    passed = sum(check["pass"] for check in checks)
    failed = [f"{name}: {c['name']}: goal {c['goal']}, measured {c['measured']}"
              for c in checks if not c["pass"]]
    if status != 0 and not failed:
        failed = [f"{name}: ended with exit status {status}"]
    verdict = f"{passed} of {len(checks)} passed" if checks else "no result"
    lines = textwrap.wrap(shown, SHOWN_WIDTH) or [""]
    table = [f"{name:24}{lines[0]:{SHOWN_WIDTH}}  {verdict:>16}{nanoseconds / 1e9:8.1f} s"]
    table += [" " * 24 + line for line in lines[1:]]
    return table, failed, len(checks)


def main():
    folder = pathlib.Path(sys.argv[1])
    programs = sorted(folder.glob("*.status"))
    print(f"{'Summary':24}{'what it shows':{SHOWN_WIDTH}}  {'checks':>16}{'time':>10}")
    print("=" * (24 + SHOWN_WIDTH + 2 + 16 + 10))
    failures, count = [], 0
    for program in programs:
        table, failed, checks = chapter(program)
        print("\n".join(table))
        failures += failed
        count += checks
    print()
    if not programs:
        failures.append("no chapter was run")
    for failure in failures:
        print(f"FAILED  {failure}")
    if not failures:
        print(f"All {count} checks of {len(programs)} chapters passed.")
    print(f"Output and results of each chapter: {folder}/")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
