#!/usr/bin/env bash
# Everything that needs a GPU, on any machine that has one: builds, tests, runs compute-sanitizer's tools,
# measures, and collects what came out.
#
#   scripts/gpu_check.sh [STEP...]        build, measure, counters, tests, sanitizer; all of them by default
#
# Environment: BUILD, the build folder (default build/gpu); OUT, where logs and results go (default
# $BUILD/results); CMAKE_FLAGS, further flags for configuring; TARGETS, what to build (default all);
# FILTER, a regular expression that test names must match. All steps run; those that failed are named at the end, and the exit status is then 1.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD:-build/gpu}
out=${OUT:-$build/results}
steps=("$@")
((${#steps[@]} > 0)) || steps=(build measure counters tests sanitizer)
for step in "${steps[@]}"; do
    case $step in
        build | measure | counters | tests | sanitizer) ;;
        -h | --help)
            sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' scripts/gpu_check.sh
            exit
            ;;
        *)
            echo "gpu_check.sh: \"$step\" is none of build, measure, counters, tests, sanitizer" >&2
            exit 2
            ;;
    esac
done

if ! gpu=$(nvidia-smi 2>&1); then
    echo "gpu_check.sh: no GPU here: nvidia-smi says: $(tail -n 1 <<<"$gpu")" >&2
    exit 2
fi
mkdir -p "$out"
tee "$out/nvidia-smi.txt" <<<"$gpu" | sed -n '1,14p'

failed=()
logged() { # NAME COMMAND...
    printf '\n======== %s ========\n' "$1"
    local begin=$SECONDS
    "${@:2}" > >(tee "$out/$1.log") 2>&1 || failed+=("$1")
    wait # for tee
    printf '(%s: %d s)\n' "$1" $((SECONDS - begin))
}

run_build() {
    # shellcheck disable=SC2086  # several flags, several targets
    cmake -S . -B "$build" -DFA_CUDA=ON -DCMAKE_BUILD_TYPE=Release ${CMAKE_FLAGS:-} &&
        cmake --build "$build" --parallel "$(nproc)" ${TARGETS:+--target $TARGETS}
}

run_tests() { # LABEL: a GPU is shared by all, so that they run one by one
    ctest --test-dir "$build" --label-regex "^$1\$" --tests-regex "${FILTER:-.}" --no-tests=error \
        --output-on-failure --output-junit "$(realpath "$out")/$1.xml"
}

# Where there is a GPU, a test that could not use it is a failure.
nothing_skipped() { # LABEL
    grep '(Skipped)' "$out/$1.log" && failed+=("$1: tests were skipped")
}

measure() { # PROGRAM [FLAGS...]
    local name
    name=$(basename "$1")
    "$@" --device cuda --json "$out/$name.json"
}

# What the kernels are made of, and what they move: a tool that is not there is no failure.
counters() {
    local status=0
    python3 -B scripts/count_instructions.py --json "$out/exp2_instructions.json" \
        "$build/bin/ch05_exp2" || (($? == 77)) || status=1
    python3 -B scripts/count_instructions.py --json "$out/exp2_instructions_ftz.json" \
        --flags=-ftz=true || (($? == 77)) || status=1
    python3 -B scripts/gpu_counters.py --build "$build" --json "$out/gpu_counters.json" ||
        (($? == 77)) || status=1
    return $status
}

for step in "${steps[@]}"; do
    case $step in
        build) logged build run_build ;;
        tests) logged gpu run_tests gpu && nothing_skipped gpu ;;
        sanitizer) logged sanitizer run_tests sanitizer && nothing_skipped sanitizer ;;
        measure)
            for program in "$build"/bin/ch0[4-9]_*; do
                logged "$(basename "$program")" measure "$program"
            done
            ;;
        counters) logged counters counters ;;
    esac
done

printf '\nLogs and results are in %s:\n' "$out"
ls "$out"
if ((${#failed[@]} > 0)); then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "All steps passed."
