"""The flags of peers.py, judged before PyTorch is even looked for."""
import argparse
import json
import pathlib
import re

from flags import Flags, real, several, whole

DTYPES = ["fp32", "fp16", "bf16"]
MOST_ELEMENTS = 2**60  # as in ch06_benchmark
COUNT, LENGTH, HEAD_DIM = whole(1, 2**20), whole(1, 2**24), whole(1, 4096)
KEYS = ["batch", "heads_q", "heads_kv", "len_q", "len_kv", "head_dim", "dtype", "causal", "set", "cache"]


def pattern(text):
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"\"{text}\": {error}")
    return text


def parser(description):
    flags = Flags(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--like", type=pathlib.Path, help="take the shapes from these results of ch06_benchmark")
    flags.add_argument("--json", type=pathlib.Path, help="write the results to this file")
    flags.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    flags.add_argument("--lengths", type=several(LENGTH), default=[512, 1024])
    flags.add_argument("--batch", type=COUNT, default=4)
    flags.add_argument("--heads", type=COUNT, default=12)
    flags.add_argument("--heads-kv", type=COUNT)
    flags.add_argument("--head-dim", type=HEAD_DIM, default=64)
    flags.add_argument("--dtype", choices=DTYPES, default="bf16")
    flags.add_argument("--mask", choices=["causal", "full"], default="causal")
    flags.add_argument("--cache", choices=["warm", "cold"], default="warm")
    flags.add_argument("--implementations", type=pattern, default="",
                       help="regular expression that their names contain")
    flags.add_argument("--repetitions", type=whole(1, 1000), default=10)
    flags.add_argument("--memory-limit", type=real(0, 2**20), default=0, help="GiB of the card to pretend; 0: all")
    flags.add_argument("--power", type=real(0, 60), default=0,
                       help="seconds of more calls for each row on a GPU, for the mean power, such as 0.4; 0: none")
    flags.add_argument("--rest", type=real(0, 60), default=0,
                       help="seconds without work before each repetition, such as 0.1, for the rate of a card that "
                            "is not at its limit of power; 0: none")
    flags.add_argument("--threads", type=whole(0, 1024), default=0, help="CPU threads; 0: PyTorch's choice")
    flags.add_argument("--seed", type=whole(0, 2**63 - 1), default=1)
    return flags


def why_impossible(row):
    """Why there is no problem with these extents; empty if there is one."""
    extents = ["batch", "heads_q", "heads_kv", "len_q", "len_kv", "head_dim"]
    for key in extents:
        if type(row[key]) is not int or row[key] < 1:
            return f"\"{key}\" is {row[key]!r}, not a whole number from 1 on"
    batch, heads_q, heads_kv, len_q, len_kv, head_dim = (row[key] for key in extents)
    if row["dtype"] not in DTYPES:
        return f"\"dtype\" is {row['dtype']!r}, none of {', '.join(DTYPES)}"
    if heads_q % heads_kv:
        return f"{heads_q} query heads are no multiple of {heads_kv} key/value heads"
    if batch * heads_q * max(len_q * head_dim, len_kv * head_dim, len_q * len_kv) > MOST_ELEMENTS:
        return "more than 2^60 elements"
    return ""


def rows_like(path):
    """The rows of results of ch06_benchmark, each shape once. Raises ValueError in words."""
    rows = {}
    try:
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            if "cache" in row:  # a timed row
                rows.setdefault(tuple(row[key] for key in KEYS), row)
    except OSError as error:
        raise ValueError(error.strerror)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"no results of ch06_benchmark ({error!r})")
    if not rows:
        raise ValueError("no timed rows")
    for row in rows.values():
        if why_impossible(row):
            raise ValueError(f"no results of ch06_benchmark ({why_impossible(row)})")
    return list(rows.values())


def rows_of(flags, arguments):
    """The shapes that the flags ask for, as rows of ch06_benchmark describe them. Ends the program if there is no
    such shape."""
    if arguments.like:
        try:
            return rows_like(arguments.like)
        except ValueError as error:
            flags.exit(1, f"{flags.prog}: --like {arguments.like}: {error}\n")
    rows = [{"batch": arguments.batch, "heads_q": arguments.heads, "heads_kv": arguments.heads_kv or arguments.heads,
             "len_q": length, "len_kv": length, "head_dim": arguments.head_dim, "dtype": arguments.dtype,
             "causal": arguments.mask == "causal", "set": "flags", "cache": arguments.cache}
            for length in arguments.lengths]
    for row in rows:
        if why_impossible(row):
            flags.error(why_impossible(row))
    return rows
