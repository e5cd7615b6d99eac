#!/usr/bin/env bash
# Installs what is missing, configures and builds: the part that run.sh and test.sh share.
#
#   scripts/build.sh [PRESET [TARGET...]]      a preset of CMakePresets.json, "release" by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-release}
targets=("${@:2}")

scripts/setup.sh
folder=build
[[ $preset == release ]] || folder=build/$preset
if [[ $preset == release && -e $folder/CMakeCache.txt ]]; then
    cmake -S . -B "$folder" # as it was configured: perhaps by hand, with another generator
else
    cmake --preset "$preset"
fi
cmake --build "$folder" --parallel "$(nproc)" ${targets[@]:+--target "${targets[@]}"}
