#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: first as the course is built, then once more
# with the address and undefined-behaviour sanitizers. That second run leaves out what takes long with
# them: the tests labelled "slow", those on large reference models, and the CUDA kernels on the CPU
# executor. (To run them all: cmake --preset asan -DFA_TESTS_WITHOUT= , build, ctest --preset asan.)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

test_preset() { # PRESET [CTEST-FLAGS...]
    printf '\n======== tests, %s ========\n\n' "$1"
    scripts/build.sh "$1"
    ctest --preset "$1" --parallel "$(nproc)" "${@:2}"
}

test_preset release
cmake --preset asan -DFA_TESTS_WITHOUT="executor|reference"
test_preset asan -LE "slow|executor|reference"
