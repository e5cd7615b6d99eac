#!/usr/bin/env bash
# Fetches GPT-2 124M as OpenAI published it (openai-community/gpt2 on Hugging Face) and the first 65,537
# tokens of FineWeb-Edu's validation shard, for chapter 7. See usage() below.
#
# What is fetched is checked against what the server says of it. Of a large file the hub names the SHA-256
# (X-Linked-ETag), of a small one the SHA-1 that git gives it (ETag). No checksum is written down here: one
# copied from somewhere would only look like a check.
#
# A file is fetched under a name ending in .part and gets its own name once it is checked. The name of a
# .part holds the checksum, so that a transfer is only ever resumed with bytes of the same version.
set -euo pipefail
export LC_ALL=C

readonly MODEL=openai-community/gpt2/resolve/main
readonly SHARD=datasets/karpathy/fineweb-edu-100B-gpt2-token-shards/resolve/main/edu_fineweb_val_000000.bin
readonly TOKENS=65537        # 64 sequences of 1,024 tokens, and the target of the last
readonly VOCABULARY=50257
readonly SUMS=SHA256SUMS     # written last: with it, the files are known to be whole without the network
readonly FILES=(config.json vocab.json merges.txt model.safetensors val_tokens.bin)
readonly ATTEMPTS=6

usage() {
    cat <<EOF
usage: scripts/fetch_gpt2.sh [--hub URL] [--dir DIRECTORY]

Fetches GPT-2 124M (550 MB) and 65,537 validation tokens into models/gpt2. Can be stopped and started again
at any time: it goes on where it was. If all is there, it checks the files and fetches nothing.

  --hub URL        a mirror of huggingface.co (or set FA_HUB)
  --dir DIRECTORY  where to put the files, default models/gpt2 in the course's folder
EOF
}

say() { printf '%s\n' "$*" >&2; }
die() {
    say "fetch_gpt2.sh: $*"
    exit 1
}
wrong_usage() {
    say "fetch_gpt2.sh: $* (see --help)"
    exit 2
}

# header NAME FILE: the value of the last header of that name, without quotes and the mark of weak ETags.
header() {
    awk -v name="$1" 'tolower($1) == name ":" { $1 = ""; value = $0 }
                      END { gsub(/^[ \t]+|[ \t\r]+$/, "", value); print value }' "$2" |
        sed -e 's/^W\///' -e 's/^"\(.*\)"$/\1/'
}

# describe URL: asks for the headers of a file. Sets size and checksum (each empty if the server does not
# say) and url, the address to fetch from. Follows redirects on the hub itself, but not the one to the store
# of large files: the checksum is in the answer that redirects, and the store may refuse the question.
describe() {
    url=$1
    local status=300 location=$url linked='' hops=0
    while [[ $status == 3?? && -z $linked && $location == "$hub"/* ]]; do
        ((++hops <= 5)) || die "$url: the server sends from one address to the next"
        url=$location
        status=$(curl -sS --head --header 'Accept-Encoding: identity' --connect-timeout 20 --max-time 60 \
            --output "$scratch/head" --write-out '%{http_code}' "$url" 2>"$scratch/error") ||
            die "cannot ask for $url: $(head -n 1 "$scratch/error")"
        [[ $status == [23]?? ]] || die "$url: the server answers $status"
        linked=$(header x-linked-etag "$scratch/head")
        location=$(header location "$scratch/head")
        [[ $location != /* ]] || location=$hub$location
    done
    checksum=${linked:-$(header etag "$scratch/head")}
    size=$(header x-linked-size "$scratch/head")
    [[ -n $size || $status == 3?? ]] || size=$(header content-length "$scratch/head")
    [[ $size =~ ^[0-9]+$ ]] || size=
    [[ $checksum =~ ^([0-9a-f]{40}|[0-9a-f]{64})$ ]] || checksum=
}

bytes_in() { stat -c %s "$1" 2>/dev/null || echo 0; }

# transfer URL FILE SIZE: fetches the rest of FILE, in several attempts if the connection breaks.
transfer() {
    local attempt status=0 progress=(-sS)
    [[ ! -t 2 ]] || progress=(--progress-bar)
    for ((attempt = 1; attempt <= ATTEMPTS; ++attempt)); do
        [[ $(bytes_in "$2") != "$3" ]] || return 0
        if ((attempt > 1)); then
            say "  connection lost at byte $(bytes_in "$2") of $3, trying again ($attempt of $ATTEMPTS)"
            sleep "${FA_RETRY_SECONDS:-$((attempt * attempt))}"
        fi
        status=0
        curl "${progress[@]}" --fail --location --continue-at - --connect-timeout 20 \
            --speed-limit 1000 --speed-time 60 --output "$2" "$1" || status=$?
        case $status in
            0) [[ $(bytes_in "$2") -lt $3 ]] || return 0 ;;
            33) rm -f "$2" ;; # the server cannot resume: from the start
            22 | 23) break ;; # refused by the server; or the disk is full: waiting does not help
        esac
    done
    die "could not fetch $1: $(bytes_in "$2") of $3 bytes are here, curl's exit status is $status;" \
        "run again to go on"
}

# checksum_of FILE CHECKSUM: what FILE has for a checksum, of the same kind as CHECKSUM.
checksum_of() {
    local found
    if [[ ${#2} == 64 ]]; then
        found=$(sha256sum "$1")
    else # git's name of a file's contents
        found=$( (printf 'blob %d\0' "$(bytes_in "$1")" && cat "$1") | sha1sum)
    fi
    printf '%s' "${found%% *}"
}

# fetch NAME: one file of the model.
fetch() {
    local name=$1 part found
    describe "$hub/$MODEL/$name"
    [[ -n $checksum && -n $size ]] || die "$hub/$MODEL/$name: the server names no size and checksum"
    [[ $name != model.safetensors || ${#checksum} == 64 ]] ||
        die "$hub/$MODEL/$name: the server names no SHA-256 of it (X-Linked-ETag)"
    if [[ -e $name ]]; then # from an earlier run that was stopped
        [[ $(checksum_of "$name" "$checksum") != "$checksum" ]] || return 0
        say "$name: differs from the server's"
        rm -f "$name"
    fi
    part=$name.$checksum.part
    find . -maxdepth 1 -name "$name.*.part" ! -name "$part" -delete # of another version
    if [[ $(bytes_in "$part") != "$size" ]]; then
        say "$name: $size bytes$([[ ! -s $part ]] || echo ", $(bytes_in "$part") of them are here")"
        transfer "$url" "$part" "$size"
    fi
    found=$(bytes_in "$part")
    if [[ $found != "$size" ]]; then
        rm -f "$part"
        die "$name: $found bytes arrived, the server named $size; removed, run again"
    fi
    found=$(checksum_of "$part" "$checksum")
    if [[ $found != "$checksum" ]]; then
        rm -f "$part"
        die "$name: checksum is $found, the server named $checksum; removed, run again"
    fi
    mv -f "$part" "$name"
}

# fetch_tokens NAME: the head of the shard, with a header that counts the tokens that are in it. The checksum
# of the whole shard says nothing about its head; what can be checked is the form of it.
fetch_tokens() {
    local name=$1 part=$1.part bytes=$((1024 + 2 * TOKENS)) status words largest
    say "$name: $bytes bytes"
    rm -f "$part"
    # A server that ignores the range would send 200 MB: --max-filesize ends that at once.
    status=$(curl -sS --location --retry 3 --connect-timeout 20 --max-time 120 --range "0-$((bytes - 1))" \
        --max-filesize "$bytes" --output "$part" --write-out '%{http_code}' "$hub/$SHARD") ||
        { rm -f "$part" && die "could not fetch the first $bytes bytes of $hub/$SHARD"; }
    [[ $status == 206 ]] || die "$hub/$SHARD: the server answers $status to a request for a range"
    [[ $(bytes_in "$part") == "$bytes" ]] || die "$hub/$SHARD: $(bytes_in "$part") of $bytes bytes arrived"
    read -r -a words < <(od -A n --endian=little -t d4 -N 12 "$part")
    [[ ${words[0]} == 20240520 && ${words[1]} == 1 ]] ||
        die "$hub/$SHARD: magic and version are ${words[0]} and ${words[1]}, expected 20240520 and 1"
    ((words[2] >= TOKENS)) || die "$hub/$SHARD: has ${words[2]} tokens, fewer than $TOKENS"
    largest=$(od -A n -v --endian=little -t u2 -j 1024 "$part" |
        awk '{ for (i = 1; i <= NF; ++i) if ($i > largest) largest = $i } END { print largest }')
    ((largest < VOCABULARY)) || die "$hub/$SHARD: has token $largest, the vocabulary ends at $((VOCABULARY - 1))"
    # The count, the third int32: TOKENS in little-endian order.
    # shellcheck disable=SC2059
    printf "$(printf '\\x%02x' $((TOKENS & 255)) $((TOKENS >> 8 & 255)) $((TOKENS >> 16 & 255)) 0)" |
        dd of="$part" bs=1 seek=8 conv=notrunc status=none
    mv -f "$part" "$name"
}

hub=${FA_HUB:-https://huggingface.co}
directory=$(dirname "${BASH_SOURCE[0]}")/../models/gpt2
while (($# > 0)); do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --hub | --dir)
            if [[ -z ${2-} ]]; then wrong_usage "$1 needs a value"; fi
            if [[ $1 == --hub ]]; then hub=$2; else directory=$2; fi
            shift 2
            ;;
        *) wrong_usage "unknown argument $1" ;;
    esac
done
hub=${hub%/}
[[ $hub =~ ^https?:// ]] || wrong_usage "--hub must start with https:// or http://, not '$hub'"

for tool in curl sha256sum sha1sum od awk dd flock; do
    command -v "$tool" >/dev/null || die "needs $tool; on Debian and Ubuntu: apt-get install curl coreutils mawk util-linux"
done
mkdir -p "$directory" 2>/dev/null || die "cannot make the directory $directory"
cd "$directory"
directory=$PWD
exec 9>.lock || die "cannot write in $directory"
flock --nonblock 9 || die "another fetch_gpt2.sh is at work in $directory"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'say; say "stopped; run again to go on"; exit 130' INT TERM

if [[ -e $SUMS ]]; then
    if [[ $(awk '{ print $2 }' "$SUMS") == "$(printf '%s\n' "${FILES[@]}")" ]] &&
        sha256sum --check --status "$SUMS"; then
        say "GPT-2 124M is in $directory; all files are as they were fetched"
        exit 0
    fi
    say "files in $directory are not as they were fetched; fetching what differs"
    rm -f "$SUMS" val_tokens.bin
fi

say "from $hub into $directory"
for file in "${FILES[@]}"; do
    if [[ $file != val_tokens.bin ]]; then
        fetch "$file"
    elif [[ ! -e $file ]]; then
        fetch_tokens "$file"
    fi
done
sha256sum "${FILES[@]}" >"$SUMS.part"
mv -f "$SUMS.part" "$SUMS"
say "GPT-2 124M is in $directory"
