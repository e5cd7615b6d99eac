#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests: first as the course is built, then once more
# with the address and undefined-behaviour sanitizers. That second run leaves out what takes long with
# them: the tests labelled "slow", those on large reference models, and the CUDA kernels on the CPU
# executor (ctest --preset asan runs them all).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

test_preset() { # PRESET [CTEST-FLAGS...]
    printf '\n======== tests, %s ========\n\n' "$1"
    scripts/build.sh "$1"
    ctest --preset "$1" --parallel "$(nproc)" "${@:2}"
}

test_preset release
test_preset asan -LE "slow|executor|reference"
