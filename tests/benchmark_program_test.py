#!/usr/bin/env python3
"""ch06_benchmark from outside: names, results, a memory limit, Google Benchmark's own flags.

usage: benchmark_program_test.py PROGRAM [gpu]
"gpu" tries it on a GPU; where there is none it says "skipped: …".
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
ON_GPU = "gpu" in sys.argv[2:]
QUICK = ["--device", "cpu", "--parts", "timing", "--repetitions", "2", "--lengths", "64,256", "--heads", "2",
         "--implementations", "^cpu_(naive|fast)$", "--threads", "2", "--benchmark_min_time=0.001s"]
TIMED_KEYS = ["implementation", "device", "batch", "heads_q", "heads_kv", "len_q", "len_kv", "head_dim", "dtype",
              "causal", "direction", "status", "reason", "median_ms", "min_ms", "runs", "tflops", "bound_share",
              "scratch_bytes", "peak_bytes", "predicted_ms", "max_error"]


class FromOutside(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def run_program(self, *flags):
        return subprocess.run([PROGRAM, *flags], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def results(self, *flags):
        run = self.run_program("--json", "results.json", *flags)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        if "--benchmark_format=console" not in flags:  # Google Benchmark describes the machine there
            self.assertEqual(run.stderr, "")
        return json.loads((self.folder / "results.json").read_text(encoding="utf-8")), run.stdout


@unittest.skipIf(ON_GPU, "for a CPU")
class Benchmark(FromOutside):
    def test_every_row_is_timed_by_hand(self):
        run = self.run_program("--device", "cpu", "--shapes", "all", "--benchmark_list_tests")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        names = run.stdout.splitlines()
        self.assertGreater(len(names), 20)
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertRegex(name, r"^cpu_\w+/B\d+/H\d+/T\d+/d\d+/(fp32|fp16|bf16)/(causal|full)/warm/manual_time$")
        self.assertTrue(any("/T1000/" in name for name in names))

    def test_rows(self):
        document, _ = self.results(*QUICK)
        rows = document["rows"]
        self.assertEqual([(r["implementation"], r["len_q"]) for r in rows],
                         [("cpu_naive", 64), ("cpu_naive", 256), ("cpu_fast", 64), ("cpu_fast", 256)])
        for row in rows:
            for key in TIMED_KEYS:
                self.assertIn(key, row)
            self.assertEqual((row["status"], row["runs"], row["cache"]), ("ok", 2, "warm"))
            self.assertGreater(row["median_ms"], 0)
            self.assertGreaterEqual(row["median_ms"], row["min_ms"])
            flops = 4 * 2 * row["len_q"] ** 2 * 64 / 2
            self.assertAlmostEqual(row["tflops"] * row["median_ms"] * 1e9 / flops, 1, places=9)
        naive, fast = rows[1], rows[3]
        self.assertGreater(naive["scratch_bytes"], 2 * 2 * 256 * 256 * 4 - 1)
        self.assertLess(fast["scratch_bytes"], naive["scratch_bytes"])
        for row in rows:  # Q, K, V and O of two heads, LSE, and scratch
            held = 4 * 2 * row["len_q"] * 64 * 4 + 2 * row["len_q"] * 4 + row["scratch_bytes"]
            self.assertEqual(row["peak_bytes"], held)
            self.assertLessEqual(row["bound_ms"], row["predicted_ms"])
        self.assertEqual(document["ceilings"][0]["dtype"], "fp32")

    def test_memory_limit(self):
        document, shown = self.results(*QUICK, "--memory-limit", "0.0007")
        status = {(r["implementation"], r["len_q"]): r["status"] for r in document["rows"]}
        self.assertEqual(status, {("cpu_naive", 64): "ok", ("cpu_naive", 256): "out_of_memory",
                                  ("cpu_fast", 64): "ok", ("cpu_fast", 256): "ok"})
        row = document["rows"][1]
        self.assertIsNone(row["median_ms"])
        self.assertRegex(row["reason"], r"^out of memory: \d+ bytes asked for, \d+ free$")
        self.assertIn("out of memory", shown)

    def test_a_rest_before_each_repetition(self):
        begin = time.monotonic()
        document, _ = self.results(*QUICK, "--rest", "0.25")
        # Four rows, two repetitions each, and at least one run that finds out how long one takes.
        self.assertGreater(time.monotonic() - begin, 4 * 3 * 0.25)
        self.assertEqual(document["rest_seconds"], 0.25)
        for row in document["rows"]:  # the rest is no part of the time
            self.assertLess(row["median_ms"], 250)

    def test_what_an_implementation_refuses_is_told_and_not_judged(self):
        accuracy = ["--device", "cpu", "--parts", "accuracy", "--accuracy-lengths", "65",
                    "--implementations", "^(cpu_naive|cpu_fast|executor_(hopper|tiled))$"]
        # 7: strides that TMA does not take. 264: more than the executor's kernels do.
        for head_dim, refuse in [("7", {"executor_hopper"}), ("264", {"executor_hopper", "executor_tiled"})]:
            with self.subTest(head_dim=head_dim):
                document, shown = self.results(*accuracy, "--head-dim", head_dim)
                refused = {r["implementation"]: r["reason"] for r in document["rows"] if r["status"] == "unsupported"}
                self.assertEqual(set(refused), refuse)
                self.assertTrue(all(re.search(r"\d", reason) for reason in refused.values()), refused)
                checked = {check["name"].split(":")[0] for check in document["checks"]}
                self.assertEqual(checked, {"cpu_naive", "cpu_fast", "executor_hopper", "executor_tiled"} - refuse)

    def test_google_benchmarks_flags(self):
        document, shown = self.results(*QUICK, "--benchmark_filter=fast.*T64/", "--benchmark_format=console",
                                       "--benchmark_out=google.json", "--benchmark_repetitions=3",
                                       "--benchmark_min_time=0.002")
        self.assertEqual([r["name"] for r in document["rows"]],
                         ["cpu_fast/B1/H2/T64/d64/fp32/causal/warm/manual_time"])
        self.assertEqual(document["rows"][0]["runs"], 3)
        self.assertIn("FLOP/s", shown)
        google = json.loads((self.folder / "google.json").read_text(encoding="utf-8"))
        self.assertEqual(google["context"]["executable"], "ch06_benchmark")
        repetitions = [b for b in google["benchmarks"] if b["run_type"] == "iteration"]
        self.assertEqual(len(repetitions), 3)
        for b in repetitions:  # its rate is the formula over its time, in microseconds
            self.assertEqual(b["time_unit"], "us")
            self.assertAlmostEqual(b["FLOP/s"] * b["real_time"] * 1e-6 / (4 * 2 * 64**2 * 64 / 2), 1, places=6)
            row = document["rows"][0]
            self.assertAlmostEqual(b["bound_share"] * b["real_time"] * 1e-3 / row["bound_ms"], 1, places=6)
            self.assertEqual(b["peak_bytes"], row["peak_bytes"])

    def test_other_parts(self):
        document, _ = self.results("--device", "cpu", "--parts", "accuracy,crossover", "--accuracy-lengths", "65",
                                   "--crossover-lengths", "8,32", "--implementations", "naive|fast$")
        errors = [r for r in document["rows"] if r.get("quantity") == "error"]
        self.assertEqual({r["implementation"] for r in errors},
                         {"cpu_naive", "cpu_naive_bf16_scores", "cpu_fast"})
        self.assertTrue(all(0 < r["max_error"] < 0.1 for r in errors))
        self.assertEqual([c["implementation"] for c in document["crossover"]], ["cpu_fast"])
        self.assertEqual([p["length"] for p in document["crossover"][0]["points"]], [8, 32])

    def test_every_part_checks_something(self):
        document, shown = self.results("--device", "cpu", "--parts", "methods")
        self.assertEqual([check["name"] for check in document["checks"]],
                         [f"{document['timing_methods'][0]['implementation']}, timed in several ways, is right: "
                          "error over the bound"])
        self.assertIn("the median of 20 calls", shown)

    def test_what_is_not_judged_is_not_said_to_be_right(self):
        document, _ = self.results("--device", "cpu", "--parts", "timing", "--lengths", "64", "--implementations",
                                   "bf16_scores$", "--benchmark_min_time=0.001s")
        self.assertEqual([check["name"] for check in document["checks"]],
                         ["rows timed", "rows that failed", "repetitions behind each median"])

    def test_google_benchmarks_switches(self):
        for switch in "", "=true", "=1", "=yes", "=on":
            run = self.run_program("--device", "cpu", f"--benchmark_list_tests{switch}", "--implementations", "naive$")
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertTrue(all(line.startswith("cpu_naive/") for line in run.stdout.splitlines()), run.stdout)

    def test_a_report_that_has_nowhere_to_go(self):
        run = self.run_program("--device", "cpu", "--benchmark_out=none/x.json")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, r"\Ach06_benchmark: --benchmark_out: [^\n]*none/x.json[^\n]*\n\Z")

    def test_wrong_usage(self):
        late = [f"--benchmark_{flag}" for flag in (
            "min_time=abc", "min_time=-1", "min_time=nan", "min_time", "min_warmup_time=-2", "repetitions=x",
            "repetitions=0", "repetitions=-3", "filter=(", "filter=zzz", "filter=-cpu", "filter", "out=", "out",
            "out_format=xml", "color=blue", "list_tests=maybe", "time_unit=h", "v=x", "format",
            "counters_tabular=2")]
        for flags, words in [(["--benchmark_nonsense=1"], "--benchmark_nonsense"),
                             (["--benchmark_format=json"], "--benchmark_out"),
                             *(([flag], flag.partition("=")[0]) for flag in late),
                             (["--crossover-lengths", "64"], "--crossover-lengths"),
                             (["--parts", "methods", "--implementations", "naive"], "--parts methods"),
                             (["--parts", "accuracy,crossover", "--implementations", "naive"], "--parts crossover"),
                             (["--batch", "1048576", "--heads", "1048576", "--lengths", "1m"], "2^60"),
                             (["--batch", "1048576", "--heads", "1048576", "--accuracy-lengths", "1m"], "2^60"),
                             (["--implementations", "("], "--implementations"),
                             (["--implementations", "executor"], "cpu_naive"),
                             (["--parts", "timing,"], "--parts"), (["--shapes", "x"], "causal"),
                             (["--lengths", "0"], "--lengths"), (["--heads", "3", "--heads-kv", "2"], "multiple"),
                             (["--cache", "cold"], "--cache")]:
            with self.subTest(flags=flags):
                run = self.run_program("--device", "cpu", *flags)
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertRegex(run.stderr, r"\Ach06_benchmark: [^\n]+\n\Z")
                self.assertIn(words, run.stderr)


@unittest.skipUnless(ON_GPU, "for a GPU")
class BenchmarkOnGpu(FromOutside):
    QUICK = ["--device", "cuda", "--parts", "timing", "--repetitions", "2", "--benchmark_min_time=0.001s"]

    def test_every_row_is_timed_by_events(self):
        run = self.run_program("--device", "cuda", "--shapes", "all", "--benchmark_list_tests")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        names = run.stdout.splitlines()
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertRegex(
                name, r"^cuda_\w+/B\d+/H\d+/T\d+/d\d+/(fp32|fp16|bf16)/(causal|full)/(cold|warm)/manual_time$")
        for length in [512, 1000, 1024, 2048, 4096, 8192, 16384]:
            self.assertTrue(any(f"/B4/H12/T{length}/d64/bf16/causal/cold/" in name for name in names))

    def test_rows_of_a_small_card(self):
        document, shown = self.results(*self.QUICK, "--lengths", "512,4096", "--memory-limit", "2", "--cache", "cold")
        status = {(row["implementation"], row["len_q"]): row["status"] for row in document["rows"]}
        self.assertEqual(status["cuda_naive", 4096], "out_of_memory")
        self.assertEqual({s for (name, t), s in status.items() if t == 512 or "naive" not in name}, {"ok"})
        self.assertIn("out of memory", shown)
        for row in document["rows"]:
            if row["status"] == "ok":
                self.assertGreater(row["clock_mhz"], 100)
                self.assertTrue(0 < row["bound_share"] < 1, row)
            else:
                self.assertRegex(row["reason"], r"\d+ bytes")

    def test_what_is_not_supported_is_a_row(self):
        document, shown = self.results(*self.QUICK, "--lengths", "64", "--dtype", "fp32", "--cache", "warm")
        status = {row["implementation"]: row["status"] for row in document["rows"]}
        self.assertEqual(status["cuda_naive_16bit_scores"], "unsupported")
        self.assertEqual(status["cuda_naive"], "ok")
        self.assertIn("unsupported", shown)


def why_no_gpu():
    run = subprocess.run([PROGRAM, "--device", "cuda", "--benchmark_list_tests"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    return "" if run.returncode == 0 else run.stderr.strip()


if __name__ == "__main__":
    if ON_GPU and why_no_gpu():
        print(f"skipped: {why_no_gpu()}")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
