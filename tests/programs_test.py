#!/usr/bin/env python3
"""What every chapter's program promises, tried from outside: --help, one line and exit status 2 for
wrong usage, and a run with its defaults that passes its own checks and writes results of the one shape.

usage: programs_test.py PROGRAM defaults|usage
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONTEXT = ["program", "machine", "cores", "threads", "memory_bytes", "os", "compiler", "build_type",
           "flags", "commit", "seed", "date"]
PROGRAM = pathlib.Path()


class InFolder(unittest.TestCase):
    """Runs the program in an empty folder, which it must not litter."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def run_program(self, *flags):
        return subprocess.run([PROGRAM, *flags], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def assert_one_line(self, text):
        self.assertRegex(text, rf"\A{PROGRAM.name}: [^\n]+\n\Z")


class Usage(InFolder):
    def test_help(self):
        run = self.run_program("--help")
        self.assertEqual(run.returncode, 0)
        self.assertEqual(run.stderr, "")
        for flag in ["--help", "--json", "--seed", "--device"]:
            self.assertIn(flag, run.stdout)

    def test_wrong_flags(self):
        for flags in [["--no-such-flag"], ["stray"], ["--seed"], ["--seed", "x"], ["--device", "tpu"],
                      ["--json"], ["--json", ""]]:
            with self.subTest(flags=flags):
                run = self.run_program(*flags)
                self.assertEqual(run.returncode, 2)
                self.assertEqual(run.stdout, "")
                self.assert_one_line(run.stderr)

    def test_every_option_refuses_nonsense(self):
        """Each option that takes a value names the fault of a value that none of them can take, before
        anything else is said. Only --prompt takes any text."""
        help_text = self.run_program("--help").stdout
        options = [words[0].split(",")[-1] for line in help_text.splitlines()
                   if (words := line.split()) and words[0].startswith("-") and len(words) > 1
                   and words[1].split("=")[0] not in ("Print",)]
        takes_value = [o for o in options if o not in ("--help", "--json", "--prompt")]
        self.assertIn("--seed", takes_value)
        for option in takes_value:
            with self.subTest(option=option):
                run = self.run_program(option, "no\x01such-value")
                self.assertIn(run.returncode, (1, 2))
                self.assertEqual(run.stdout, "")
                self.assert_one_line(run.stderr)

    def test_numbers_refuse_nonsense(self):
        """Each option that takes a number names the fault of what is none."""
        options = re.findall(r"(--[\w-]+) (INT|UINT|FLOAT)\b", self.run_program("--help").stdout)
        self.assertIn(("--seed", "UINT"), options)
        for option, kind in options:
            too_large = "1e999" if kind == "FLOAT" else "99999999999999999999999999"
            for value in ["x", "", "1x", too_large] + ["nan", "inf"] * (kind == "FLOAT"):
                with self.subTest(option=option, value=value):
                    run = self.run_program(option, value)
                    self.assertEqual(run.returncode, 2)
                    self.assert_one_line(run.stderr)
                    self.assertLess(len(run.stderr), 200)

    def test_results_that_have_nowhere_to_go(self):
        run = self.run_program("--json", str(self.folder / "none" / "results.json"))
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, "")
        self.assert_one_line(run.stderr)


class Defaults(InFolder):
    def test_defaults(self):
        run = self.run_program("--json", "results.json")
        print(run.stdout)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, 0)
        self.assertEqual(os.listdir(self.folder), ["results.json"])
        document = json.loads((self.folder / "results.json").read_text(encoding="utf-8"))
        self.assertEqual(list(document)[:3], ["context", "rows", "checks"])
        for key in CONTEXT:
            self.assertIn(key, document["context"])
        self.assertEqual(document["context"]["program"], PROGRAM.name)
        self.assertIsInstance(document["rows"], list)
        self.assertTrue(document["checks"], "no checks")
        for check in document["checks"]:
            self.assertEqual(sorted(check), ["goal", "measured", "name", "pass"])
            self.assertIs(check["pass"], True, check)
            self.assertIn(check["name"], run.stdout)


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    suite = {"defaults": Defaults, "usage": Usage}[sys.argv.pop(1)]
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(suite)
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
