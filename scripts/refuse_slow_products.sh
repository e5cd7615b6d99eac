#!/usr/bin/env bash
# Runs a compiler's command line, and fails where ptxas says that it took warpgroup products apart
# ("serialized", its messages C7510 to C7520: the kernel would be right and much slower), kept registers in
# memory, or ignored setmaxnreg (C7504 to C7508). To ptxas none of it is worth a warning.
set -euo pipefail

messages=$(mktemp)
trap 'rm -f "$messages"' EXIT
status=0
"$@" 2> "$messages" || status=$?
# What it says about every kernel that is well is for nobody.
grep -vE '^ptxas info *:|^ *0 bytes stack frame, 0 bytes spill|^ *[0-9]+ bytes stack frame, 0 bytes spill stores, 0 bytes spill loads$' \
    "$messages" >&2 || true
((status == 0)) || exit "$status"
if grep -E 'C75[0-9][0-9]|serializ|setmaxnreg|[1-9][0-9]* bytes spill' "$messages" >&2; then
    echo "refuse_slow_products.sh: ptxas took products apart, kept registers in memory, or did not move them" >&2
    exit 1
fi
