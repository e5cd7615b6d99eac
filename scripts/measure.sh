#!/usr/bin/env bash
# Measures everything that the pages show of a machine, and keeps the results under docs/results/NAME/, where
# NAME is the GPU's, or "cpu" where there is none: benchmark.json (all shapes, accuracy, crossover, block sizes, ways of timing),
# small_card.json (the same card with 24 GiB), peers.json (PyTorch and Triton), benchmark_cpu.json and
# peers_cpu.json (the processor), and one file for each chapter's program. Needs a build; run
# scripts/embed.py afterwards to bring tables and pictures in step.
#
#   scripts/measure.sh [--bin FOLDER] [--results FOLDER] [--python PROGRAM] [PART...]
#
# Parts: benchmark, peers, cpu, chapters, each a minute or two on an H200; all by default, and without a GPU
# only "cpu". Each is a run of its own, for machines that allow only so much at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    echo "measure.sh: $1 (usage: scripts/measure.sh [--bin FOLDER] [--results FOLDER] [--python PROGRAM]" \
        "[benchmark|peers|cpu|chapters...])" >&2
    exit 2
}

bin=build/bin results=docs/results python=python3 parts=()
while (($# > 0)); do
    case $1 in
        --bin | --results | --python)
            (($# > 1)) || usage "$1 needs a value"
            declare "${1#--}=$2"
            shift 2
            ;;
        benchmark | peers | cpu | chapters)
            parts+=("$1")
            shift
            ;;
        *) usage "\"$1\" is neither a flag nor a part" ;;
    esac
done
# "NVIDIA H200" gives h200, "NVIDIA GeForce RTX 4090" rtx4090. What cannot be in a file's name goes.
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 || true)
if [[ -z $gpu ]]; then
    ((${#parts[@]} > 0)) || parts=(cpu)
    if [[ ${parts[*]} != cpu ]]; then
        echo "measure.sh: no GPU here (nvidia-smi names none): the only part is \"cpu\"" >&2
        exit 1
    fi
    gpu=cpu
fi
((${#parts[@]} > 0)) || parts=(benchmark peers cpu chapters)
name=$(tr '[:upper:]' '[:lower:]' <<<"$gpu" | sed -E 's/nvidia|geforce|tesla//g; s/[^a-z0-9]//g')
folder=$results/$name
mkdir -p "$folder"
echo "Measuring $gpu into $folder"

# Runs a command, says how long it took, and goes on if a check of it failed: what was measured is kept.
failed=()
run() {
    local begin=$SECONDS status=0
    printf '\n======== %s ========\n\n' "$*"
    "$@" || status=$?
    printf '\n%d s\n' $((SECONDS - begin))
    ((status == 0)) || failed+=("$1 (exit status $status)")
}

has_torch() {
    "$python" -c 'import torch' 2>/dev/null && return
    echo "PyTorch is not here ($python): the peers are left out."
    return 1
}

for part in "${parts[@]}"; do
    case $part in
        benchmark)
            run "$bin/ch06_benchmark" --device cuda --shapes all --json "$folder/benchmark.json"
            run "$bin/ch06_benchmark" --device cuda --parts timing --cache cold --memory-limit 24 \
                --json "$folder/small_card.json"
            ;;
        peers)
            [[ -f $folder/benchmark.json ]] || usage "part peers needs the shapes of $folder/benchmark.json"
            if has_torch; then
                run "$python" -B scripts/peers.py --device cuda --like "$folder/benchmark.json" \
                    --json "$folder/peers.json"
            fi
            ;;
        cpu)
            run "$bin/ch06_benchmark" --device cpu --parts timing --shapes causal,bf16 --lengths 512,1k,2k \
                --json "$folder/benchmark_cpu.json"
            if has_torch; then
                run "$python" -B scripts/peers.py --device cpu --like "$folder/benchmark_cpu.json" \
                    --json "$folder/peers_cpu.json"
            fi
            ;;
        chapters)
            for program in "$bin"/ch04_* "$bin"/ch05_* "$bin"/ch08_* "$bin"/ch09_*; do
                [[ -x $program ]] || continue
                run "$program" --device cuda --json "$folder/$(basename "$program").json"
            done
            if [[ -x $bin/ch07_gpt2_124m && -d models/gpt2-124m ]]; then
                run "$bin/ch07_gpt2_124m" --device cuda --json "$folder/ch07_gpt2_124m.json"
            else
                echo "models/gpt2-124m is not here (scripts/fetch_gpt2.sh): chapter 7 is left out."
            fi
            ;;
    esac
done

printf '\nResults are in %s; scripts/embed.py brings the pages in step.\n' "$folder"
if ((${#failed[@]} > 0)); then
    printf 'FAILED: %s\n' "${failed[@]}" >&2
    exit 1
fi
