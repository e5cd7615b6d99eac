#!/usr/bin/env python3
"""Tests of the scripts that keep the pages true: embed.py, check_outputs.py, check_links.py,
check_mathematics.py."""
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))
import check_links  # noqa: E402
import check_mathematics  # noqa: E402
import check_outputs  # noqa: E402
import check_reference  # noqa: E402
import embed  # noqa: E402
import pages  # noqa: E402
import summary  # noqa: E402

SOURCE = """\
int before();
    // [update]
    int update() {
        // [inner]
        return 1;
        // [inner]
    }
    // [update]
// [open]
"""
OUTPUT = """\
$ ch09_x
Title
=====
first   1

The same with V
===============
second  2
"""


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name).resolve()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_script(self, script, *flags, root=None):
        run = subprocess.run([sys.executable, "-B", SCRIPTS / script, "--root", root or self.root, *flags],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return run.returncode, run.stdout, run.stderr


class Embed(InFolder):
    def setUp(self):
        super().setUp()
        self.write("chapters/09_x/x.h", SOURCE)
        self.write("chapters/09_x/output.txt", OUTPUT)

    def refreshed(self, text):
        return embed.refreshed(text, self.root)

    def test_region_is_dedented_and_without_inner_markers(self):
        text, faults = self.refreshed("a\n<!-- snippet: chapters/09_x/x.h#update -->\n"
                                      "<!-- /snippet -->\nb\n")
        self.assertEqual(faults, [])
        self.assertEqual(text, "a\n<!-- snippet: chapters/09_x/x.h#update -->\n```cpp\nint update() {\n"
                               "    return 1;\n}\n```\n<!-- /snippet -->\nb\n")

    def test_refreshing_twice_changes_nothing(self):
        once, _ = self.refreshed("<!-- snippet: chapters/09_x/x.h#inner -->\nold\n<!-- /snippet -->\n"
                                 "<!-- output: chapters/09_x/output.txt -->\n\n<!-- /output -->\n")
        twice, faults = self.refreshed(once)
        self.assertEqual(once, twice)
        self.assertEqual(faults, [])
        self.assertNotIn("old", once)

    def test_output_whole_and_by_heading(self):
        whole, _ = self.refreshed("<!-- output: chapters/09_x/output.txt -->\n<!-- /output -->\n")
        self.assertIn("```text\n" + OUTPUT + "```\n", whole)
        part, _ = self.refreshed("<!-- output: chapters/09_x/output.txt#The same with V -->\n"
                                 "<!-- /output -->\n")
        self.assertIn("```text\nThe same with V\n===============\nsecond  2\n```\n", part)
        self.assertNotIn("first", part)

    def test_fence_is_longer_than_fences_inside(self):
        self.write("inner.txt", "```\nx\n````\n")
        text, _ = self.refreshed("<!-- output: inner.txt -->\n<!-- /output -->\n")
        self.assertIn("`````text\n```\nx\n````\n`````\n", text)
        again, faults = self.refreshed(text)
        self.assertEqual((again, faults), (text, []))

    def test_table(self):
        self.write("r.json", '{"rows": [{"name": "a|b", "ms": 1.23456, "ok": null}, {"name": "c", "ms": 2}]}')
        text, faults = self.refreshed("<!-- table: r.json#rows -->\n<!-- /table -->\n")
        self.assertEqual(faults, [])
        self.assertIn("| name | ms | ok |\n| --- | --: | --: |\n| a\\|b | 1.235 |  |\n| c | 2 |  |\n", text)

    def test_diff(self):
        self.write("a.h", "one\ntwo\nthree\nfour\nfive\n")
        self.write("b.h", "one\ntwo\n3\nfour\nfive\n")
        text, faults = self.refreshed("<!-- diff: a.h b.h -->\nold\n<!-- /diff -->\n")
        self.assertEqual(faults, [])
        self.assertEqual(text, "<!-- diff: a.h b.h -->\n```diff\n--- a.h\n+++ b.h\n@@\n two\n-three\n+3\n"
                               " four\n```\n<!-- /diff -->\n")
        self.assertEqual(self.refreshed(text), (text, []))

    def test_markers_in_code_are_left_alone(self):
        page = "```\n<!-- snippet: none.h -->\n```\n~~~\n<!-- /output -->\n~~~\n"
        self.assertEqual(self.refreshed(page), (page, []))

    def test_faults_name_their_line(self):
        for marker, message in [
                ("snippet: none.h#x", "no file none.h"),
                ("snippet: chapters/09_x/x.h#nope", "marked 0 times, must be 2 (regions: inner, open, update)"),
                ("snippet: chapters/09_x/x.h#open", "marked 1 times"),
                ("output: chapters/09_x/output.txt#Nope", 'headings: "Title", "The same with V"'),
                ("table: chapters/09_x/x.h#rows", "Expecting value"),
                ("diff: chapters/09_x/x.h", "names no two files"),
                ("diff: chapters/09_x/x.h none.h", "no file none.h"),
                ("snippet:", "names no file")]:
            with self.subTest(marker=marker):
                kind = marker.partition(":")[0]
                _, faults = self.refreshed(f"\n\n<!-- {marker} -->\n<!-- /{kind} -->\n")
                self.assertEqual([number for number, _ in faults], [3])
                self.assertIn(message, faults[0][1])

    def test_pairs_must_close(self):
        marker = "<!-- snippet: chapters/09_x/x.h#inner -->\n"
        for page, line in [(f"\n{marker}text\n", 2), (f"{marker}{marker}<!-- /snippet -->\n", 1),
                           (f"{marker}<!-- /output -->\n", 1), ("\n<!-- /snippet -->\n", 2)]:
            with self.subTest(page=page):
                self.assertEqual([number for number, _ in self.refreshed(page)[1]], [line])

    def test_check_shows_the_difference_and_changes_nothing(self):
        page = self.write("page.md", "<!-- snippet: chapters/09_x/x.h#inner -->\n<!-- /snippet -->\n")
        before = page.read_text(encoding="utf-8")
        code, out, err = self.run_script("embed.py", "--check")
        self.assertEqual(code, 1)
        self.assertIn("+return 1;", out)
        self.assertIn("1 pages are out of step", err)
        self.assertEqual(page.read_text(encoding="utf-8"), before)
        self.assertEqual(self.run_script("embed.py")[0], 0)
        self.assertEqual(self.run_script("embed.py", "--check"), (0, "", ""))
        self.write("chapters/09_x/x.h", SOURCE.replace("return 1", "return 2"))
        self.assertEqual(self.run_script("embed.py", "--check")[0], 1)

    def test_a_page_with_a_fault_is_left_as_it_is(self):
        page = self.write("docs/page.md", "<!-- snippet: none.h -->\n<!-- /snippet -->\n")
        code, _, err = self.run_script("embed.py")
        self.assertEqual(code, 1)
        self.assertEqual(err, "docs/page.md:1: snippet none.h: no file none.h\n")
        self.assertEqual(page.read_text(encoding="utf-8"), "<!-- snippet: none.h -->\n<!-- /snippet -->\n")

    def test_no_page_is_wrong_usage(self):
        nothing = self.root / "nothing"
        nothing.mkdir()
        for script, *flags in [("embed.py", "--check"), ("embed.py",), ("check_links.py",), ("check_mathematics.py",)]:
            with self.subTest(script=script, flags=flags):
                code, out, err = self.run_script(script, *flags, root=nothing)
                self.assertEqual((code, out), (2, ""))
                self.assertEqual(err, f"{script}: --root {nothing}: no page is there (see --help)\n")
        for flags in ["--check", "none.md"], ["none.md"], [str(nothing)]:
            with self.subTest(flags=flags):
                code, out, err = self.run_script("embed.py", *flags)
                self.assertEqual((code, out, err), (2, "", f"embed.py: {flags[-1]}: no such page (see --help)\n"))

    def test_builds_and_downloads_hold_no_pages(self):
        for name in ["README.md", "docs/a.md", "build/b.md", "build-x/c.md", "models/d.md", ".git/e.md"]:
            self.write(name, "")
        found = [path.relative_to(self.root).as_posix() for path in pages.pages(self.root)]
        self.assertEqual(found, ["README.md", "docs/a.md"])


class CheckOutputs(unittest.TestCase):
    def in_step(self, recorded, fresh):
        return check_outputs.difference(recorded, fresh, "output.txt") == ""

    def test_words_and_numbers_must_agree(self):
        self.assertTrue(self.in_step("a  1 2.5", "a 1    2.5"))
        self.assertFalse(self.in_step("a 1", "b 1"))
        self.assertFalse(self.in_step("a 1", "a 2"))
        self.assertFalse(self.in_step("a 1", "a 1.0"))
        self.assertFalse(self.in_step("a 1", "a -1"))
        self.assertFalse(self.in_step("a\nb", "a"))
        self.assertFalse(self.in_step("a", "a\nb"))
        self.assertFalse(self.in_step("8 MiB", "9 MiB"))
        self.assertFalse(self.in_step("FAIL", "pass"))
        self.assertFalse(self.in_step("nan", "1"))

    def test_times_and_rates_may_differ(self):
        for a, b in [("took 1.23 ms", "took 9.5 ms"), ("950 us", "1.02 ms"), ("3s", "4s"),
                     ("88 GFLOP/s", "1.2 TFLOP/s"), ("120 tokens/s", "7 tokens/s"), ("9 GB/s", "1.1e1 GB/s")]:
            with self.subTest(a=a, b=b):
                self.assertTrue(self.in_step(a, b))
        self.assertFalse(self.in_step("3 steps", "4 steps"))
        self.assertFalse(self.in_step("3 FLOP", "4 FLOP"))

    def test_rounding_errors_may_differ_but_must_stay_tiny(self):
        self.assertTrue(self.in_step("error 3.1e-07", "error 2.9e-08"))
        self.assertTrue(self.in_step("error 3.1e-07", "error 0"))
        self.assertFalse(self.in_step("error 3.1e-07", "error 0.5"))
        self.assertFalse(self.in_step("error 3.1e-07", "error 3.1e+07"))
        self.assertFalse(self.in_step("error 3.1e-07", "error nan"))

    def test_measured_sections_compare_words_only(self):
        a = "Peaks, measured\n===============\nT 5\n---  --\n\nNext\n====\nT {}\n"
        b = "Peaks, measured\n===============\nT 66\n----  -\n\nNext\n====\nT {}\n"
        self.assertTrue(self.in_step(a.format(1), b.format(1)))
        self.assertFalse(self.in_step(a.format(1), b.format(2)))
        checks = "Checks\n======\nerror  <= 1  {}  {}\n"
        self.assertTrue(self.in_step(checks.format(0.5, "pass"), checks.format(0.7, "pass")))
        self.assertFalse(self.in_step(checks.format(0.5, "pass"), checks.format(0.7, "FAIL")))

    def test_conclusions_from_measurements_may_change(self):
        a = "Times, measured\n===============\n=> {}\n"
        self.assertTrue(self.in_step(a.format("faster from T = 5 on"), a.format("never faster")))
        self.assertFalse(self.in_step(a.format("faster"), a.format("faster") + "=> more\n"))
        b = "Times\n=====\n=> {}\n"
        self.assertFalse(self.in_step(b.format("faster"), b.format("slower")))

    def test_the_difference_shows_both_lines(self):
        shown = check_outputs.difference("same\nold 1\n", "same\nnew 2\n", "output.txt")
        self.assertEqual(shown, "output.txt:2:\n  - old 1\n  + new 2\n")

    def test_commands_are_run_again(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "ch09_x"
            program.write_text("#!/bin/sh\necho \"got $*\"\nexit ${1:-0}\n")
            program.chmod(0o755)
            fresh = check_outputs.rerun("$ ch09_x\nold\n\n$ build/bin/ch09_x 0 'a b'\n", pathlib.Path(folder))
            self.assertEqual(fresh, "$ ch09_x\ngot \n\n$ build/bin/ch09_x 0 'a b'\ngot 0 a b\n")
            with self.assertRaisesRegex(RuntimeError, "ended with exit status 3"):
                check_outputs.rerun("$ ch09_x 3\n", pathlib.Path(folder))
            with self.assertRaisesRegex(RuntimeError, "first line must be a command"):
                check_outputs.rerun("got\n", pathlib.Path(folder))


class CheckLinks(InFolder):
    def test_github_anchors(self):
        for heading, anchor in [("Plain words", "plain-words"), ("What is `m`, and why?", "what-is-m-and-why"),
                                ("FlashAttention-2: Q outside", "flashattention-2-q-outside"),
                                ("\u5185\u5b58 accounting", "\u5185\u5b58-accounting"), ("a_b *c*", "a_b-c"),
                                ("[Link](x.md) text", "link-text")]:
            self.assertEqual(check_links.slug(heading), anchor)

    def test_good_links(self):
        self.write("docs/img/x.svg", "")
        self.write("docs/other page.md", "# Same\n# Same\n<a id=\"set\"></a>\n")
        self.write("docs/page.md", "# Here\n[a](other%20page.md#same-1) [b](#here) ![c](img/x.svg \"t\")\n"
                   "<img src=\"img/x.svg\"> [d](https://example.org/none) [e](/docs/page.md) [f]\n"
                   "[g](other%20page.md#set) `[no](none.md)` [h](../docs)\n\n[f]: page.md#here\n"
                   "```\n[no](none.md)\n```\n$a[i](j)$\n")
        self.assertEqual(self.run_script("check_links.py"), (0, "9 links, 0 dead\n", ""))

    def test_dead_links(self):
        self.write("page.md", "\n[a](none.md)\n![b](none.svg)\n<img src='none.png'>\n[c](#none)\n"
                   "[d](../outside.md)\n[e](sub/x.md#y)\n\n[f]: none.txt\n")
        self.write("sub/x.md", "# Z\n")
        code, out, err = self.run_script("check_links.py")
        self.assertEqual((code, out), (1, "7 links, 7 dead\n"))
        self.assertEqual(err.splitlines()[0], "page.md:2: none.md: no such file")
        self.assertEqual([line.split(":")[1] for line in err.splitlines()], list("2345679"))


class CheckMathematics(InFolder):
    def test_what_github_leaves_alone(self):
        self.write("page.md", "$a_i$ and $b_{ij}$, `$c\\,d$` snake_case_word _slanted_\n\n$$x_{\\text{a}} \\quad y_j$$\n\n"
                   "```\n$a\\,b$\n```\n$n_1 \\le n_2$ a \\_ b, 5 \\$ here\n")
        self.assertEqual(self.run_script("check_mathematics.py"), (0, "", ""))

    def test_escapes_and_emphasis(self):
        self.write("page.md", "good\n$a\\,b$ $c\\;d$\n\n$$\nx \\\\\ny\n$$\n\n$\\text{A}_i$ is\n$o_{j}$\n\n$\\text{B}_i$\n\n$o_{j}$\n")
        code, out, err = self.run_script("check_mathematics.py")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual([line.split(":")[1] for line in err.splitlines() if line.startswith("page.md")], list("2259"))
        self.assertIn("an underscore begins emphasis in $\\text{A}_i$", err)


class WrongUsage(unittest.TestCase):
    def test_one_line_and_exit_status_2(self):
        """Of every script with flags, whatever it needs for its work."""
        scripts = [path for path in sorted(SCRIPTS.rglob("*.py"))
                   if "parse_args" in path.read_text(encoding="utf-8") and path.name != "reference_gpt2.py"]
        self.assertGreater(len(scripts), 8)
        for script in scripts:
            with self.subTest(script=script.name):
                run = subprocess.run([sys.executable, "-B", script, "--no-such\nflag"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertRegex(run.stderr, rf"\A{script.name}: [^\n]+ \(see --help\)\n\Z")


class CheckReference(unittest.TestCase):
    def test_names_that_say_it_all_need_no_comment(self):
        for member, allowed in [
                ("size (variable) of struct fa::Shape", True),
                ("Random(std::uint64_t seed) (function) of class fa::Random", True),
                ("View(T *data) (function) of struct fa::View< T >", True),
                ("operator==(const Shape &) const =default (function) of struct fa::Shape", True),
                ("path() const (function) of class fa::File", True),
                ("size() const =0 (function) of class fa::Tokenizer", True),
                ("key(string_t &) override (function) of class fa::JsonEvents", True),
                ("__syncthreads() (macro definition) of file device_language.h", True),
                ("FA_CHECK(call) (macro definition) of file check.h", False),
                ("find(std::string_view name) const (function) of class fa::File", False),
                ("name_of(Device device) (function) of namespace fa", False),
                ("Matrix (typedef) of namespace fa::tiles", False)]:
            with self.subTest(member=member):
                warning = f"a.h:1: warning: Member {member} is not documented."
                self.assertIs(check_reference.is_allowed(warning), allowed)
        self.assertFalse(check_reference.is_allowed("a.h:1: warning: Compound fa::X is not documented."))
        self.assertFalse(check_reference.is_allowed("a.h:1: warning: Found unknown command '\\xHH'"))


class Summary(InFolder):
    def summary(self):
        printed = io.StringIO()
        sys.argv = ["summary.py", str(self.root)]
        with contextlib.redirect_stdout(printed):
            code = summary.main()
        return code, printed.getvalue()

    def chapter(self, name, status, *passes):
        self.write(f"{name}.status", f"{status} 1500000000\n")
        checks = ", ".join(f'{{"name": "c{i}", "goal": "<= 1", "measured": "{i}", "pass": {p}}}'
                           for i, p in enumerate(passes))
        self.write(f"{name}.json", f'{{"context": {{"description": "Shows {name}."}}, "checks": [{checks}]}}')

    def test_all_passed(self):
        self.chapter("ch01_a", 0, "true", "true")
        self.chapter("ch02_b", 0, "true")
        code, text = self.summary()
        self.assertEqual(code, 0)
        self.assertIn("All 3 checks of 2 chapters passed.", text)
        self.assertRegex(text, r"ch01_a +Shows ch01_a\. +2 of 2 passed +1\.5 s")

    def test_failures(self):
        self.chapter("ch01_a", 1, "true", "false")
        self.write("ch02_b.status", "139 5\n")
        code, text = self.summary()
        self.assertEqual(code, 1)
        self.assertIn("FAILED  ch01_a: c1: goal <= 1, measured 1", text)
        self.assertIn("FAILED  ch02_b: ended with exit status 139", text)
        self.assertNotIn("All", text)

    def test_nothing_was_run(self):
        self.assertEqual(self.summary()[0], 1)


class ContinuousIntegration(InFolder):
    """.ci/run, with programs of our own in place of those that it runs."""

    def test_what_runs_beside_ends_with_it(self):
        programs = {"scripts/setup.sh": "", "scripts/test.sh": "", "scripts/exercise.sh": "", "bin/git": "",
                    "bin/cmake": 'echo $$ >"$PIDS/beside"; exec sleep 300',
                    "bin/python3": 'case $* in *embed.py*) echo $$ >"$PIDS/before"; exec sleep 300 ;; esac'}
        for name, text in programs.items():
            self.write(name, f"#!/bin/sh\n{text}\n").chmod(0o755)
        self.write(".ci/run", (SCRIPTS.parent / ".ci" / "run").read_text(encoding="utf-8")).chmod(0o755)
        # Ctrl-C is a signal to all that the script runs; kill sends one to the script alone.
        for send, signal_, status in (os.killpg, signal.SIGINT, 130), (os.kill, signal.SIGTERM, -signal.SIGTERM):
            with self.subTest(signal=signal_), tempfile.TemporaryDirectory() as pids:
                run = subprocess.Popen(
                    [self.root / ".ci" / "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env={**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "PIDS": pids},
                    start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
                begin = time.monotonic()
                while len(list(pathlib.Path(pids).iterdir())) < 2 and time.monotonic() - begin < 60:
                    time.sleep(0.05)
                send(run.pid, signal_)
                self.assertEqual(run.wait(60), status)
                beside = pathlib.Path("/proc", (pathlib.Path(pids) / "beside").read_text().strip(), "cmdline")

                def is_running():  # what has ended, unnoticed by its parent, has no command line
                    return beside.exists() and beside.read_bytes() != b""
                while is_running() and time.monotonic() - begin < 60:
                    time.sleep(0.05)
                ended = not is_running()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)  # the step in front, where it still runs
                self.assertTrue(ended)


class Setup(InFolder):
    """scripts/setup.sh, with programs of our own in place of apt and dpkg."""

    def setup(self, apt_get, dpkg_query):
        for name, text in [("apt-get", apt_get), ("dpkg-query", dpkg_query), ("sudo", 'exec "$@"')]:
            self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)
        run = subprocess.run([SCRIPTS / "setup.sh"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
                                  "INSTALLED": str(self.root / "installed")})
        return run.returncode, run.stdout, run.stderr

    def test_nothing_is_missing(self):
        self.assertEqual(self.setup("exit 1", "echo installed"), (0, "", ""))

    def test_installs_what_is_missing(self):
        code, out, err = self.setup('case "$*" in *install*eigen*) touch "$INSTALLED" ;; esac',
                                    'test -e "$INSTALLED" && echo installed')
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"\AInstalling with apt: .*libeigen3-dev.*\n\Z")

    def test_an_apt_that_does_nothing(self):
        code, _, err = self.setup("exit 0", "exit 1")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"\Aapt did not fail, and did not install: cmake [^\n]*\n\Z")

    def test_an_apt_that_fails(self):
        self.assertNotEqual(self.setup("exit 100", "exit 1")[0], 0)


if __name__ == "__main__":
    unittest.main()
