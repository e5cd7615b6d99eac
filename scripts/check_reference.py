#!/usr/bin/env python3
"""Builds the reference with Doxygen and treats its warnings as errors.

Undocumented names are allowed where the name says it all: data members and constants, functions without
parameters, constructors, assignment and other operators, what overrides a documented function, and CUDA's
own words where the executor defines them. Every class, type and function besides those must be documented,
and every comment must be sound.

usage: check_reference.py OUTPUT_FOLDER
exit status: 0; 1 if there is a warning
"""
import os
import pathlib
import re
import subprocess
import sys

from pages import ROOT

UNDOCUMENTED = re.compile(r"Member (?P<signature>.*) \((?P<kind>[\w ]+)\) of "
                          r"(?P<scope>\w+) (?P<where>.+) is not documented")


def is_allowed(warning):
    """Whether a warning is of a name that needs no documentation."""
    match = UNDOCUMENTED.search(warning)
    if not match:
        return False
    kind, signature = match["kind"], match["signature"]
    if kind == "variable":
        return True
    if kind == "macro definition":
        return re.match(r"__\w+__|__syncthreads|threadIdx|blockIdx", signature) is not None
    if kind != "function":
        return False
    name = re.split(r"[(<]", signature)[0]
    own_class = match["where"].split("<")[0].split("::")[-1].strip()
    return (name in (own_class, f"~{own_class}") or name.startswith("operator")
            or re.search(r"\(\)( const| noexcept| ?=0)*$", signature) is not None
            or signature.endswith("override"))


def run(output, further_settings=""):
    """Writes the reference to `output`/html. Prints the faults, and returns their number."""
    output.mkdir(parents=True, exist_ok=True)
    log = output / "warnings.txt"
    log.unlink(missing_ok=True)
    config = (ROOT / "docs/Doxyfile").read_text(encoding="utf-8")
    config += f"\nOUTPUT_DIRECTORY = \"{output}\"\nWARN_LOGFILE = \"{log}\"\n{further_settings}"
    subprocess.run(["doxygen", "-"], input=config, text=True, cwd=ROOT, check=True)
    warnings = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    faults = sorted({w.replace(f"{ROOT}{os.sep}", "") for w in warnings if w and not is_allowed(w)})
    for fault in faults:
        print(fault, file=sys.stderr)
    return len(faults)


def main():
    output = pathlib.Path(sys.argv[1]).resolve()
    faults = run(output)
    print(f"{output}/html: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
