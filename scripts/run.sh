#!/usr/bin/env bash
# The course, end to end: installs what is missing, builds, runs the chapters that have a program, in order
# and with their defaults, and closes with a summary on one page. Exit status 0 if every check of every
# chapter passed. What each program printed, and its results as JSON, stay in build/run/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh release programs
mkdir -p build/run
rm -f build/run/ch*
shopt -s nullglob

for program in build/bin/ch0[1-7]_*; do
    name=$(basename "$program")
    printf '\n\n======== %s ========\n\n' "$name"
    begin=$(date +%s%N)
    status=0
    "$program" --json "build/run/$name.json" > >(tee "build/run/$name.txt") || status=$?
    wait # for tee: the next chapter prints after this one
    printf '%d %d\n' "$status" $(($(date +%s%N) - begin)) >"build/run/$name.status"
done

printf '\n\n'
python3 -B scripts/summary.py build/run
