#!/usr/bin/env python3
"""Tries the build on a machine that lacks every library: CMake must fetch and build the pinned versions.

Nothing is fetched from the declared addresses: their content is taken from Debian's source packages, which
hold the unchanged releases, and put into local repositories; git is told to look there in place of the
addresses that scripts/cmake/Dependencies.cmake declares. So the declarations, the targets that each
library's own CMake files offer, and the versions are tried as they are, without a second registry.
Boost is left out: it is declared as an archive, and its sources are a hundred times larger.

usage: check_fetched_build.py [--keep FOLDER]     (needs apt-get, git, cmake, ninja)
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

from flags import Flags
from pages import ROOT

# The address's last part, and Debian's name of the source package.
SOURCE_PACKAGES = {"eigen": "eigen3", "fmt": "fmtlib", "json": "nlohmann-json3", "CLI11": "cli11",
                   "utf8proc": "utf8proc", "doctest": "doctest", "benchmark": "benchmark"}
SUITE = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} bookworm main\n"
MIRROR = "http://deb.debian.org/debian"
TARGETS = ["test_results", "test_half", "test_bpe_tokenizer", "ch02_online_softmax"]


def run(command, **options):
    print("+", " ".join(map(str, command)), flush=True)
    return subprocess.run(command, check=True, **options)


def declarations():
    """(name, address, tag) of each FetchContent_Declare of a repository."""
    text = (ROOT / "scripts/cmake/Dependencies.cmake").read_text(encoding="utf-8")
    pattern = r"FetchContent_Declare\(\s*(\w+)\s+GIT_REPOSITORY (\S+)\s+GIT_TAG (\S+)"
    found = re.findall(pattern, text)
    if len(found) != text.count("GIT_REPOSITORY"):
        raise SystemExit("Dependencies.cmake declares a repository that is not pinned by a tag")
    return found


def download(packages, folder):
    """Fetches the source packages into `folder`, with lists of packages of its own."""
    lists = folder / "lists" / "partial"
    lists.mkdir(parents=True)
    (folder / "sources.list").write_text(SUITE.format(mirror=MIRROR))
    options = ["-qq", "-o", f"Dir::Etc::sourcelist={folder}/sources.list",
               "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={folder}/lists"]
    run(["apt-get", *options, "update"])
    run(["apt-get", *options, "source", "--download-only", *packages], cwd=folder)


def make_repository(archive, tag, folder):
    """A git repository of one commit, the content of the release, under the tag."""
    folder.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            member.name = member.name.partition("/")[2]  # without the folder around the release
            if member.name:
                tar.extract(member, folder)
    git = ["git", "-C", folder, "-c", "user.name=check", "-c", "user.email=check@localhost"]
    run([*git, "init", "-q"])
    run([*git, "add", "-A", "-f"])
    run([*git, "commit", "-q", "-m", tag])
    run([*git, "tag", tag])


def check(folder):
    libraries = declarations()
    packages = {name: SOURCE_PACKAGES[re.sub(r"\.git$", "", url.rsplit("/", 1)[1])]
                for name, url, _ in libraries}
    sources = folder / "sources"
    sources.mkdir(parents=True)
    download(sorted(packages.values()), sources)

    config = "[protocol \"file\"]\n\tallow = always\n"
    for name, url, tag in libraries:
        archive, = sources.glob(f"{packages[name]}_*.orig.tar.*")
        version = re.match(r"[\d.]+\d", archive.name.split("_")[1]).group()
        if version != tag.lstrip("v"):
            raise SystemExit(f"{name}: {tag} is declared, Debian's release to try it with is {version}")
        repository = folder / "repositories" / name
        make_repository(archive, tag, repository)
        config += f"[url \"file://{repository}\"]\n\tinsteadOf = {url}\n"
    (folder / "gitconfig").write_text(config)

    environment = {**os.environ, "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"),
                   "GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "file"}
    build = folder / "build"
    run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", build, "-DFA_NATIVE=OFF",
         *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name, _, _ in libraries)], env=environment)
    run(["cmake", "--build", build, "--target", *TARGETS])
    commands = json.dumps(json.loads((build / "compile_commands.json").read_text()))
    for name, _, _ in libraries:
        if f"_deps/{name.lower()}-src" not in commands:
            raise SystemExit(f"{name}: nothing was compiled with the fetched one")
    for target in TARGETS:
        program, = [p for p in build.glob(f"**/bin/{target}") if p.is_file()]
        run([program], stdout=subprocess.DEVNULL)
    print(f"Built and run with {len(libraries)} fetched libraries.")


def main():
    parser = Flags(description="tries the build with fetched libraries")
    parser.add_argument("--keep", type=pathlib.Path, help="work in this new folder and leave it there")
    arguments = parser.parse_args()
    if arguments.keep:
        check(arguments.keep.resolve())
    else:
        with tempfile.TemporaryDirectory() as folder:
            check(pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
