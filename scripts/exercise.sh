#!/usr/bin/env bash
# Builds and runs exercises: the code that readers fill in, in chapters/*/exercises/. Exit status 0 if all of those
# that were run are solved; each that is not names the invariant that is broken, with a hint.
#
#   scripts/exercise.sh [--solutions] [CHAPTER|NAME...]      such as 2, or merge_lse; all by default
#   scripts/exercise.sh --prove [CHAPTER|NAME...]    proves the checks (tests/exercises/prove.py): every solution passes,
#       every exercise as the repository has it fails with a named invariant and a hint, every invariant can be broken
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kind=exercise prove=false wanted=()
while (($# > 0)); do
    case $1 in
        --solutions) kind=solution ;;
        --prove) prove=true ;;
        -h | --help)
            sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' scripts/exercise.sh
            exit
            ;;
        -*)
            echo "exercise.sh: no flag $1 (usage: scripts/exercise.sh [--solutions|--prove] [CHAPTER|NAME...])" >&2
            exit 2
            ;;
        *) wanted+=("$1") ;;
    esac
    shift
done

# Of chapters/02_x/exercises/y_check.cpp: "02_y".
chosen=()
for check in chapters/*/exercises/*_check.cpp; do
    chapter=$(basename "$(dirname "$(dirname "$check")")")
    number=${chapter%%_*} name=$(basename "$check" _check.cpp)
    for want in "${wanted[@]-}"; do
        if [[ -z $want || $want == "$name" || $want == "${number}_$name" || $want =~ ^0*[0-9]+$ && $((10#$want)) == $((10#$number)) ]]; then
            chosen+=("${number}_$name")
            break
        fi
    done
done
if ((${#chosen[@]} == 0)); then
    echo "exercise.sh: no exercise is called ${wanted[*]}" >&2
    exit 2
fi

targets=("${chosen[@]/#/${kind}_}")
if $prove; then
    targets+=("${chosen[@]/#/solution_}")
fi
mkdir -p build
scripts/build.sh release "${targets[@]}" >build/exercises.log 2>&1 || {
    cat build/exercises.log
    exit 1
}

if $prove; then
    exec python3 -B tests/exercises/prove.py build "${chosen[@]}"
fi

failed=()
for exercise in "${chosen[@]}"; do
    "build/exercises/${kind}_$exercise" || failed+=("$exercise")
    printf '\n'
done
if ((${#failed[@]} > 0)); then
    printf 'Not passed: %s\n' "${failed[@]}"
    exit 1
fi
echo "${#chosen[@]} passed."
