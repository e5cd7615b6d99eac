#!/usr/bin/env bash
# Measures everything that the pages show of a machine, and keeps the results under docs/results/NAME/, where
# NAME is the GPU's, or "cpu" where there is none. Needs a build; run scripts/embed.py afterwards to bring
# tables and pictures in step. Parts, all by default, and without a GPU only "cpu":
#
#   benchmark     benchmark.json (all shapes, accuracy, crossover, block sizes, ways of timing) and
#                 small_card.json (the same card with 24 GiB)
#   peers         peers.json: PyTorch and Triton at the shapes of benchmark.json
#   tensor_cores  tensor_cores.json, tensor_cores_peers.json: chapter 8's kernel beside FlashAttention-2
#   hopper        hopper.json, hopper_peers.json: chapter 9's beside cuDNN and FlashAttention-2, each behind half a
#                 second of its own load, with power;
#                 hopper_rested.json, hopper_rested_peers.json: the same with a rest before each repetition;
#                 hopper_hunt.json: a hunt for rare faults, in a million launches
#   cpu           benchmark_cpu.json, peers_cpu.json: the processor
#   chapters      one file for each chapter's program, and what it printed
#
# Each is a run of its own, of one to six minutes on an H200, for machines that allow only so much at a time.
#
#   scripts/measure.sh [--bin FOLDER] [--results FOLDER] [--python PROGRAM] [PART...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    echo "measure.sh: $1 (usage: scripts/measure.sh [--bin FOLDER] [--results FOLDER] [--python PROGRAM]" \
        "[benchmark|peers|tensor_cores|hopper|cpu|chapters...])" >&2
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
        benchmark | peers | tensor_cores | hopper | cpu | chapters)
            parts+=("$1")
            shift
            ;;
        -h | --help)
            sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' scripts/measure.sh
            exit
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
((${#parts[@]} > 0)) || parts=(benchmark peers tensor_cores hopper cpu chapters)
name=$(tr '[:upper:]' '[:lower:]' <<<"$gpu" | sed -E 's/nvidia|geforce|tesla//g; s/[^a-z0-9]//g')
folder=$results/$name

# What a part needs must be there before anything is measured, or even a folder made.
for part in "${parts[@]}"; do
    programs=("$bin/ch06_benchmark")
    case $part in
        hopper) programs+=("$bin/ch09_hopper") ;;
        chapters) programs=("$bin"/ch0[4-9]_*) ;;
        peers)
            programs=()
            [[ -f $folder/benchmark.json || " ${parts[*]} " == *" benchmark "* ]] ||
                usage "part peers needs the shapes of $folder/benchmark.json"
            ;;
    esac
    for program in ${programs[@]+"${programs[@]}"}; do
        [[ -x $program ]] && continue
        echo "measure.sh: $program is not built (cmake --preset release && cmake --build build)" >&2
        exit 1
    done
done
mkdir -p "$folder"
echo "Measuring $gpu into $folder"

# Runs a command, says how long it took, and goes on if a check of it failed: what was measured is kept. With
# --keep FILE, what it prints is, too.
failed=()
run() {
    local begin=$SECONDS status keep=/dev/null
    if [[ $1 == --keep ]]; then
        keep=$2
        shift 2
    fi
    printf '\n======== %s ========\n\n' "$*"
    set +e
    "$@" | tee "$keep"
    status=${PIPESTATUS[0]}
    set -e
    printf '\n%d s\n' $((SECONDS - begin))
    ((status == 0)) || failed+=("$1 (exit status $status)")
}

# A kernel's rates, and those of peers at the same shapes.
shapes=(--shapes causal,full,d128,d128_full --lengths 512,1000,1k,2k,4k,8k,16k)
beside_peers() { # NAME IMPLEMENTATIONS PEERS POWER-SECONDS REST-SECONDS FLAGS...
    local both=(--repetitions 7 --power "$4" --rest "$5")
    run "$bin/ch06_benchmark" --device cuda --parts timing --implementations "$2" "${both[@]}" "${@:6}" \
        --json "$folder/$1.json"
    if has_torch; then
        run "$python" -B scripts/peers.py --device cuda --like "$folder/$1.json" --implementations "$3" \
            "${both[@]}" --json "$folder/$1_peers.json"
    fi
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
            if has_torch; then
                run "$python" -B scripts/peers.py --device cuda --like "$folder/benchmark.json" \
                    --json "$folder/peers.json"
            fi
            ;;
        tensor_cores)
            beside_peers tensor_cores 'cuda_tensor_cores$' flash 0 0 --cache cold "${shapes[@]}"
            ;;
        hopper)
            beside_peers hopper 'cuda_hopper$' 'flash|cudnn' 0.5 0 "${shapes[@]}"
            beside_peers hopper_rested 'cuda_hopper$' 'flash|cudnn' 0 0.1 --cache cold "${shapes[@]}"
            run "$bin/ch09_hopper" --hunt 8 --hunt-processes 18 --json "$folder/hopper_hunt.json"
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
                name=$folder/$(basename "$program")
                run --keep "$name.txt" "$program" --device cuda --json "$name.json"
            done
            model=
            for folder_of_model in models/gpt2 models/gpt2-124m; do
                [[ -d $folder_of_model ]] && model=$folder_of_model
            done
            if [[ -x $bin/ch07_gpt2_124m && -n $model ]]; then
                run --keep "$folder/gpt2_124m_cuda.txt" "$bin/ch07_gpt2_124m" --device cuda \
                    --activations fp32,bf16 --model "$model" --json "$folder/gpt2_124m_cuda.json"
            else
                echo "No GPT-2 124M in models/ (scripts/fetch_gpt2.sh): chapter 7 is left out."
            fi
            ;;
    esac
done

printf '\nResults are in %s; scripts/embed.py brings the pages in step.\n' "$folder"
if ((${#failed[@]} > 0)); then
    printf 'FAILED: %s\n' "${failed[@]}" >&2
    exit 1
fi
