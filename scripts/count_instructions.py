#!/usr/bin/env python3
"""Counts the machine instructions of chapter 4's register-tiled kernel and of chapter 5's exp2 kernel.

Reads the disassembly of a file that holds GPU code (a program, an object file or a cubin) and counts in
three places of each kernel's loop over tiles without a mask:

    softmax   the straight code between the two products: once per tile
    products  the loops of S = Q·Kᵀ and O += P·V, their bodies times their trips per tile
    loop      the softmax and the products; loading K and V is left out
    kernel    all instructions in the kernel, each once

How often the loops of the products run is told by the tile sizes in the kernel's name: a thread makes
ROWS·KEYS·HEAD_DIM multiply-adds for S and ROWS·BLOCK_N·CHANNELS for O.

Without FILE, build/bin/ch05_exp2 is read; if there is none or no GPU code in it, or if there are --flags, nvcc
compiles the two kernels.

usage: count_instructions.py [--head-dim N] [--dtype bf16] [--arch sm_90a] [--tool PATH] [--json FILE]
                             [FILE | --flags="FLAGS FOR NVCC"]
exit status: 0; 1 if the disassembly is not what it should be; 77 ("skipped: …") if there is no disassembler
or nothing to disassemble
"""
import dataclasses
import glob
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from flags import Flags

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = {"exp": "register_tiled_attention", "exp2": "exp2_attention"}
TYPES = {"f32": "f", "bf16": "8BFloat16", "f16": "7Float16"}
SHOWN = ["MUFU", "FMUL", "FFMA", "FADD", "FMNMX", "FSETP", "FSEL", "LDS", "STS", "SHFL"]
SKIPPED = 77

INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.\w+)*)([^;]*);")
LABEL = re.compile(r"^(\.L_\w+):")
FUNCTION = re.compile(r"^\s*Function : (\S+)|^\.text\.(\S+):")
ARCHITECTURE = re.compile(r"^code for (sm_\w+)|\.target\s+(sm_\w+)")
CONFIG = re.compile(r"RegisterTiledConfigILi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)E")


class Skipped(Exception):
    """Nothing to count with, or nothing to count."""


class Unexpected(Exception):
    """The disassembly does not look as it should."""


@dataclasses.dataclass
class Instruction:
    address: int
    name: str  # "MUFU"
    modifiers: str  # ".EX2"
    target: int | None = None  # of a branch


@dataclasses.dataclass
class Loop:
    first: int  # address of the first instruction
    last: int  # address of the branch back

    def holds(self, other):
        return self != other and self.first <= other.first and other.last <= self.last


def find_tool(given):
    """cuobjdump, or else nvdisasm, with the places where CUDA and Python packages keep them."""
    if given:
        return given
    folders = os.environ.get("PATH", "").split(os.pathsep)
    folders += [str(pathlib.Path(os.environ[v]) / "bin") for v in ("CUDA_HOME", "CUDA_PATH") if v in os.environ]
    folders += sorted(glob.glob("/usr/local/cuda*/bin"), reverse=True)
    if spec := importlib.util.find_spec("triton"):  # Triton brings its own
        folders.append(str(pathlib.Path(spec.origin).parent / "backends" / "nvidia" / "bin"))
    for name in ("cuobjdump", "nvdisasm"):
        for folder in folders:
            if tool := shutil.which(name, path=folder):
                return tool
    raise Skipped("neither cuobjdump nor nvdisasm is here (looked in PATH, CUDA_HOME, /usr/local/cuda* and "
                  "Triton's Python package)")


def disassembly(tool, file):
    if not file.is_file():
        raise Skipped(f"no file {file}")
    is_nvdisasm = pathlib.Path(tool).name.startswith("nvdisasm")
    if is_nvdisasm and file.suffix != ".cubin":
        raise Skipped(f"{file} is no cubin, and nvdisasm reads nothing else; cuobjdump would")
    run = subprocess.run([tool, *([] if is_nvdisasm else ["-sass"]), str(file)], capture_output=True, text=True)
    said = (run.stderr or run.stdout).strip()
    if "does not contain device code" in said or (run.returncode == 0 and not run.stdout.strip()):
        raise Skipped(f"{file} holds no GPU code: built without CUDA?")
    if run.returncode != 0:
        raise Unexpected(f"{tool} {file}: {said}")
    return run.stdout


SOURCE = """// Names both kernels with all their tile sizes, so that nvcc compiles them.
#include "chapters/05_exp2/exp2_host.h"
const void* kernels[2];
template <class Kernel, class T>
void name_kernel(const void*& kernel) {
    std::size_t need = 0;
    Kernel::with_config(0, ~std::size_t{0}, need, [&]<class Config>() {
        kernel = reinterpret_cast<const void*>(Kernel::template function<Config, T>());
    });
}
void name_kernels() {
    name_kernel<fa::RegisterTiledKernel, fa::TYPE>(kernels[0]);
    name_kernel<fa::Exp2Kernel, fa::TYPE>(kernels[1]);
}
"""


def compiled(folder, dtype, architecture, flags):
    """A cubin with the two kernels, made by nvcc."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not nvcc:
        raise Skipped("no program with GPU code, and no nvcc to compile the kernels")
    source, cubin = pathlib.Path(folder) / "kernels.cu", pathlib.Path(folder) / "kernels.cubin"
    types = {"f32": "float", "bf16": "BFloat16", "f16": "Float16"}
    source.write_text(SOURCE.replace("fa::TYPE", types[dtype] if dtype == "f32" else "fa::" + types[dtype]),
                      encoding="utf-8")
    command = [nvcc, "-std=c++20", "-O3", "--expt-relaxed-constexpr", f"-arch={architecture or 'sm_90a'}",
               f"-I{ROOT}", *flags, "-cubin", "-o", str(cubin), str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise Unexpected(f"{shlex.join(command)}: {run.stderr.strip().splitlines()[-1:]}")
    return cubin


def functions(text):
    """{(architecture, mangled name): [Instruction]} of a disassembly by cuobjdump or nvdisasm."""
    result, architecture, body, labels, pending = {}, "", None, {}, []
    for line in text.splitlines():
        if match := ARCHITECTURE.search(line):
            architecture = match.group(1) or match.group(2)
        if match := FUNCTION.match(line):
            body = result.setdefault((architecture, match.group(1) or match.group(2)), [])
            labels, pending = {}, []
            result[(architecture, match.group(1) or match.group(2)), "labels"] = labels
        elif match := LABEL.match(line):
            pending.append(match.group(1))
        elif body is not None and (match := INSTRUCTION.match(line)):
            address = int(match.group(1), 16)
            labels.update(dict.fromkeys(pending, address))
            pending = []
            body.append(Instruction(address, match.group(2), match.group(3)))
            if match.group(2) == "BRA":
                body[-1].target = match.group(4)
    for key in [k for k in result if k[1] != "labels"]:
        known = result.pop((key, "labels"))
        for i in result[key]:
            if i.target is not None:
                i.target = branch_target(i.target, known)
    return result


def branch_target(operands, labels):
    """The address that the operands of a branch name: "0x2820", "`(.L_x_3)", "P1, 0x10"."""
    if match := re.search(r"`\((\.L_\w+)\)", operands):
        return labels.get(match.group(1))
    match = re.search(r"0x([0-9a-f]+)\s*$", operands)
    return int(match.group(1), 16) if match else None


def loops(body):
    """Natural loops: from the target of a backward branch to the last such branch."""
    ends = {}
    for i in body:
        if i.target is not None and i.target < i.address:  # "BRA itself" ends the code
            ends[i.target] = max(ends.get(i.target, 0), i.address)
    return [Loop(first, last) for first, last in sorted(ends.items())]


def count(instructions):
    names = {}
    for i in instructions:
        if i.name != "NOP":
            names[i.name] = names.get(i.name, 0) + 1
    return names


def between(body, first, last):
    return [i for i in body if first <= i.address <= last]


def is_exponential(i):
    return i.name == "MUFU" and i.modifiers == ".EX2"


def analyse(body, name):
    """Counts of one kernel: {"softmax", "products", "loop", "kernel"} -> {instruction: count}."""
    config = CONFIG.search(name)
    if not config:
        raise Unexpected(f"no tile sizes in the name {name}")
    head_dim, block_m, block_n, threads_y, threads_x = map(int, config.groups())
    rows, keys, channels = block_m // threads_y, block_n // threads_x, head_dim // threads_x

    found = loops(body)
    with_exp = [o for o in found if any(map(is_exponential, between(body, o.first, o.last)))]
    outermost = [o for o in with_exp if not any(p.holds(o) for p in with_exp)]
    if len(outermost) != 2:
        raise Unexpected(f"{name}: {len(outermost)} loops with exponentials instead of two, one of them masked")
    # The masked one compares and selects besides.
    tile = min(outermost, key=lambda o: len(between(body, o.first, o.last)))

    inner = [o for o in found if tile.holds(o)]
    exponentials = [i.address for i in between(body, tile.first, tile.last) if is_exponential(i)]
    before = [o for o in inner if o.last < exponentials[0]]
    after = [o for o in inner if o.first > exponentials[-1]]
    if not before or not after:
        raise Unexpected(f"{name}: no loops before and after the exponentials")
    scores, weighted_sum = max(before, key=lambda o: o.last), min(after, key=lambda o: o.first)

    products = {}
    for loop, per_tile in ((scores, rows * keys * head_dim), (weighted_sum, rows * block_n * channels)):
        once = count(between(body, loop.first, loop.last))
        trips, rest = divmod(per_tile, once.get("FFMA", 0) or 1)
        if rest or "FFMA" not in once:
            raise Unexpected(f"{name}: {per_tile} multiply-adds a tile are no multiple of {once.get('FFMA', 0)}")
        for instruction, n in once.items():
            products[instruction] = products.get(instruction, 0) + n * trips

    softmax = count(i for i in body if scores.last < i.address < weighted_sum.first)
    loop = {n: softmax.get(n, 0) + products.get(n, 0) for n in softmax | products}
    return {"softmax": softmax, "products": products, "loop": loop, "kernel": count(body)}


def choose(found, base_name, head_dim, dtype, architecture):
    """The disassembly of one instantiation: the largest tiles for a head dimension."""
    chosen = {}
    for (arch, name), body in found.items():
        config = CONFIG.search(name)
        if (config and f"{len(base_name)}{base_name}I" in name and int(config.group(1)) == head_dim
                and name.split("EvN")[0].rstrip("E").endswith(TYPES[dtype].removesuffix("E"))
                and architecture in ("", arch)):
            chosen[arch, int(config.group(2)), name] = body
    if not chosen:
        raise Skipped(f"no kernel {base_name} for head_dim {head_dim}, {dtype}"
                      + (f" and {architecture}" if architecture else ""))
    arch, _, name = max(chosen)
    return arch, name, chosen[arch, _, name]


def rows_of(counts):
    """One row per instruction: the table of the page."""
    def total(part):
        return sum(part.values())
    rows = []
    for instruction in SHOWN + ["others", "all"]:
        def value(kernel, place):
            part = counts[kernel][place]
            if instruction == "all":
                return total(part)
            if instruction == "others":
                return total(part) - sum(part.get(n, 0) for n in SHOWN)
            return part.get(instruction, 0)
        rows.append({"instruction": instruction,
                     "softmax, exp": value("exp", "softmax"), "softmax, exp2": value("exp2", "softmax"),
                     "difference": value("exp2", "softmax") - value("exp", "softmax"),
                     "products, exp": value("exp", "products"), "products, exp2": value("exp2", "products"),
                     "kernel, exp": value("exp", "kernel"), "kernel, exp2": value("exp2", "kernel")})
    return rows


def text_table(rows):
    cells = [list(rows[0])] + [[str(v) for v in row.values()] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths)))
             for line in cells]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def disassembly_of(tool, arguments):
    """Of the file, of the program in build/, or of what nvcc makes of the sources."""
    if arguments.file:
        return disassembly(tool, arguments.file)
    if not arguments.flags:
        try:
            return disassembly(tool, ROOT / "build" / "bin" / "ch05_exp2")
        except Skipped:
            pass
    with tempfile.TemporaryDirectory() as folder:
        return disassembly(tool, compiled(folder, arguments.dtype, arguments.arch, shlex.split(arguments.flags)))


def main():
    parser = Flags(description="counts the instructions of chapter 4's and 5's kernels")
    parser.add_argument("--head-dim", type=int, choices=(64, 128, 256), default=64)
    parser.add_argument("--dtype", choices=TYPES, default="bf16")
    parser.add_argument("--arch", default="", help="such as sm_90a; the newest in the file by default")
    parser.add_argument("--tool", help="cuobjdump or nvdisasm, with its path")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--flags", default="", help="compile the kernels, with these flags besides")
    parser.add_argument("file", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.file and arguments.flags:
        parser.error("a file is compiled already: --flags goes without it")
    try:
        tool = find_tool(arguments.tool)
        found = functions(disassembly_of(tool, arguments))
        counts = {}
        for kernel, base_name in KERNELS.items():
            arch, name, body = choose(found, base_name, arguments.head_dim, arguments.dtype, arguments.arch)
            counts[kernel] = analyse(body, name)
        rows = rows_of(counts)
        version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
        release = re.search(r"release [\d.]+, V[\d.]+", version)
        context = {"program": "scripts/count_instructions.py", "architecture": arch,
                   "head_dim": arguments.head_dim, "dtype": arguments.dtype, "flags": arguments.flags,
                   "disassembler": f"{pathlib.Path(tool).name} {release.group() if release else ''}".strip()}
    except Skipped as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return SKIPPED
    except (Unexpected, OSError) as problem:
        print(f"count_instructions.py: {problem}", file=sys.stderr)
        return 1
    print(f"{arch}, d = {arguments.head_dim}, {arguments.dtype}: instructions of a thread for one tile without mask")
    print(text_table(rows))
    if arguments.json:
        partial = arguments.json.with_suffix(".partial")
        partial.write_text(json.dumps({"context": context, "rows": rows}, indent=1, ensure_ascii=False) + "\n",
                           encoding="utf-8")
        partial.replace(arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
