#!/usr/bin/env python3
"""Every doctest case is a test of CTest, under a name of its own, and that test runs this one case.

doctest ends with success when a filter matches no case, so that a name which CMake or the filter
mangles would make a test that cannot fail.

usage: discovery_test.py BUILD_FOLDER
"""
import json
import pathlib
import re
import subprocess
import sys


def output_of(command):
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return run.stdout


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    listing = json.loads(output_of(["ctest", "--test-dir", str(build), "--show-only=json-v1"]))
    programs, faults = {}, []
    for test in listing["tests"]:
        command = test.get("command", [])
        if not any(part.startswith("--test-case=") for part in command):
            continue
        counted = output_of([*command, "--count"])
        matching = re.search(r"passing the current filters: (\d+)", counted)
        if not matching or matching.group(1) != "1":
            faults.append(f"{test['name']}: its filter matches {matching and matching.group(1)} cases")
        if not any(p["name"] == "TIMEOUT" for p in test["properties"]):
            faults.append(f"{test['name']}: has no time limit")
        programs.setdefault(command[0], []).append(test["name"])

    for program, tests in programs.items():
        # The names stand between the header lines "[doctest] …" and rulers of "=".
        cases = [line for line in output_of([program, "--list-test-cases"]).splitlines()
                 if line and not line.startswith(("[doctest]", "====="))]
        for case in sorted({case for case in cases if cases.count(case) > 1}):
            faults.append(f"{program}: {cases.count(case)} cases are called \"{case}\"")
        if len(cases) != len(tests):
            faults.append(f"{program}: {len(cases)} cases, {len(tests)} tests in CTest")

    built = {str(path) for path in (build / "tests" / "bin").glob("test_*")}
    for program in sorted(built - set(programs)):
        faults.append(f"{program}: none of its cases is a test of CTest")
    if not programs:
        faults.append("CTest knows no doctest case")
    print(f"{sum(map(len, programs.values()))} cases in {len(programs)} programs")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
