#!/usr/bin/env python3
"""Which check catches which mutant: measures it, keeps it as JSON, shows it as tables on the page.

table.py --build BUILD [--jobs N] [--only NAME...]
    Runs all checks on all mutants (or those named) and controls of a build (target `mutants`), and
    rewrites docs/results/mutations.json and the tables in docs/testing.md.
table.py --check
    Compares list, JSON, tables and docs/semantics.md with one another; exit status 1 and a
    line for each difference. Runs no mutant.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from mutations import BLOCKED, EXP2, FAST, FAST_EXP2, KV_OUTER, MUTATIONS, NAIVE, REGISTER_TILED, TENSOR_CORES

ROOT = pathlib.Path(__file__).resolve().parents[2]
JSON_FILE = ROOT / "docs/results/mutations.json"
PAGE = ROOT / "docs/testing.md"
SEMANTICS = ROOT / "docs/semantics.md"
SUITE = ROOT / "tests/attention_suite.cpp"
OPEN, CLOSE = "<!-- mutations -->\n", "<!-- /mutations -->"
SHOWN = 5  # names of checks in a row of the table; the JSON has them all
CONTROLLED = (NAIVE, BLOCKED, KV_OUTER, FAST, REGISTER_TILED, FAST_EXP2, EXP2, TENSOR_CORES)
CONTROLS = [implementation for _, implementation in CONTROLLED]


def run_one(build, name, expect):
    """All checks on one module."""
    runner = build / "tests/bin/mutation_runner"
    module = build / f"tests/mutations/modules/mutant_{name}.so"
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        subprocess.run(
            [runner, module, "--expect", expect, "--all", "--json", result],
            env=os.environ | {"OMP_WAIT_POLICY": "passive"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return json.loads(result.read_text(encoding="utf-8"))


def measure(build, jobs, only):
    """The document of docs/results/mutations.json."""
    kept = {}
    if only:
        kept = {r["mutation"]: r["caught_by"] for r in json.loads(JSON_FILE.read_text())["rows"]}
    modules = [(f"control_{c}", "clean") for c in CONTROLS]
    modules += [(m.name, "caught") for m in MUTATIONS if not only or m.name in only]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {name: pool.submit(run_one, build, name, expect) for name, expect in modules}
        found = {}
        for name, future in futures.items():
            found[name] = future.result()
            print(f"{len(found)}/{len(modules)} {name}", file=sys.stderr)
    any_result = next(iter(found.values()))
    caught_by = kept | {
        n: [v["check"] for v in r["verdicts"] if v["caught"]] for n, r in found.items()
    }
    clean = [c for c in CONTROLS if not caught_by[f"control_{c}"]]
    caught = [m.name for m in MUTATIONS if caught_by[m.name]]

    def check(name, goal, measured):
        return {"name": name, "goal": str(goal), "measured": str(measured), "pass": goal == measured}

    return {
        "context": any_result["context"],
        "rows": [
            {
                "mutation": m.name,
                "stands_for": m.stands_for,
                "implementation": m.implementation,
                "file": m.file,
                "caught_by": caught_by[m.name],
            }
            for m in MUTATIONS
        ],
        "checks": [
            check("mutants caught", len(MUTATIONS), len(caught)),
            check("controls in which no check finds a fault", len(CONTROLS), len(clean)),
        ],
        "suite": [{"check": v["check"], "what": v["what"]} for v in any_result["verdicts"]],
    }


def tables(document):
    """The Markdown between the markers."""
    rows = document["rows"]
    lines = ["| deliberate fault | in | caught by |", "|---|---|---|"]
    for row in rows:
        caught_by = [f"`{c}`" for c in row["caught_by"]]
        checks = ", ".join(caught_by)
        if len(caught_by) > SHOWN + 1:
            checks = f"{', '.join(caught_by[:SHOWN])} and {len(caught_by) - SHOWN} more"
        lines.append(f"| {row['stands_for']} | `{row['implementation']}` | {checks} |")
    lines += ["", "| check | what it looks at | mutants caught | of these alone |", "|---|---|---|---|"]
    for entry in document["suite"]:
        by = [row["caught_by"] for row in rows if entry["check"] in row["caught_by"]]
        alone = sum(1 for checks in by if len(checks) == 1)
        lines.append(f"| `{entry['check']}` | {entry['what']} | {len(by)} | {alone} |")
    summary = "; ".join(f"{c['name']}: {c['measured']} of {c['goal']}" for c in document["checks"])
    return "\n".join(lines) + f"\n\n{summary[0].upper()}{summary[1:]}.\n"


def page_with(document):
    page = PAGE.read_text(encoding="utf-8")
    start, end = page.index(OPEN) + len(OPEN), page.index(CLOSE)
    return page[:start] + tables(document) + page[end:]


def write(path, text):
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def differences():
    document = json.loads(JSON_FILE.read_text(encoding="utf-8"))
    suite = dict(re.findall(r'SuiteCheck\{"(\w+)",\s*"([^"]+)"', SUITE.read_text(encoding="utf-8")))
    semantics = SEMANTICS.read_text(encoding="utf-8")
    listed = [(m.name, m.stands_for, m.implementation, m.file) for m in MUTATIONS]
    kept = [
        (r["mutation"], r["stands_for"], r["implementation"], r["file"]) for r in document["rows"]
    ]
    if listed != kept:
        yield f"{JSON_FILE.name} and mutations.py list different mutations: " + ", ".join(
            sorted({a for a, *_ in set(listed) ^ set(kept)})
        )
    if {e["check"]: e["what"] for e in document["suite"]} != suite:
        yield f"{JSON_FILE.name} and {SUITE.name} list different checks"
    for check in document["checks"]:
        if not check["pass"]:
            yield f"{JSON_FILE.name}: {check['name']}: {check['measured']}, not {check['goal']}"
    if page_with(document) != PAGE.read_text(encoding="utf-8"):
        yield f"the tables in {PAGE.name} are not those of {JSON_FILE.name}"
    for name in suite:
        if f"`{name}`" not in semantics:
            yield f"{SEMANTICS.name} does not say what check {name} is for"
    for arrow in re.findall(r"→ (.*)", semantics):
        for name in re.findall(r"`(\w+)`", arrow):
            if name not in suite:
                yield f"{SEMANTICS.name} names a check {name}, which the suite lacks"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--build", type=pathlib.Path)
    what.add_argument("--check", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if arguments.build:
        document = measure(arguments.build.resolve(), arguments.jobs, arguments.only)
        write(JSON_FILE, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        write(PAGE, page_with(document))
    problems = list(differences())
    print("\n".join(problems) or "list, results and pages are in step")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
