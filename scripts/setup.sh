#!/usr/bin/env bash
# Installs what scripts/packages.txt lists and this machine lacks. Says what it installs first; says
# nothing when nothing is missing.
#
#   scripts/setup.sh [--ci]      --ci: also what only the continuous integration needs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

list() {  # the package names, one a line
    sed 's/#.*//' scripts/packages.txt | if [[ ${1:-} == --ci ]]; then
        sed 's/^ci://'
    else
        grep -v '^ci:'
    fi | tr -s '[:space:]' '\n' | grep .
}

if ! command -v apt-get dpkg-query >/dev/null; then
    lacking=()
    for tool in cmake c++ git ninja python3; do
        command -v "$tool" >/dev/null || lacking+=("$tool")
    done
    if ((${#lacking[@]} == 0)); then
        exit 0 # CMake fetches the libraries
    fi
    echo "This machine has no apt, and lacks: ${lacking[*]}." >&2
    echo "Please install them. Debian's names of all that the course needs:" >&2
    list "${1:-}" >&2
    exit 1
fi

missing=()
find_missing() { # what is not installed of what is wanted
    local package state
    missing=()
    for package in $(list "${1:-}"); do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [[ $state == installed ]] || missing+=("$package")
    done
}
find_missing "${1:-}"
((${#missing[@]} > 0)) || exit 0

as_root=()
if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
        echo "Some packages are missing. Please run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "Installing with apt: ${missing[*]}"
# An outdated list of packages is no reason to give up: the packages may still be there.
"${as_root[@]}" apt-get update -qq || true
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "${missing[@]}" </dev/null

find_missing "${1:-}"
if ((${#missing[@]} > 0)); then
    echo "apt did not fail, and did not install: ${missing[*]}" >&2
    exit 1
fi
