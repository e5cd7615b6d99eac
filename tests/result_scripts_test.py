#!/usr/bin/env python3
"""The scripts that show results: the same picture for the same numbers, out of memory shown, tables from
several files, and words where PyTorch is missing."""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True
import peers  # noqa: E402
import plot  # noqa: E402
import result_tables  # noqa: E402


def row(implementation, length, milliseconds, **more):
    timed = {"status": "ok", "median_ms": milliseconds, "tflops": 1 / (milliseconds or 1), "bound_share": 0.25,
             "scratch_bytes": 3 * 2**20, "peak_bytes": 2**22, "clock_mhz": 1980.4}
    lacking = {"status": "out_of_memory", "median_ms": None, "tflops": None, "bound_share": None,
               "scratch_bytes": None, "peak_bytes": None, "clock_mhz": None}
    return {"implementation": implementation, "set": "causal", "cache": "cold", "len_q": length, "bytes": 2**20,
            "predicted_ms": 0.5, **(timed if milliseconds else lacking), **more}


OURS = {"context": {"program": "ch06_benchmark", "machine": "M", "seed": 1, "date": "2026-01-02T03:04:05Z"},
        "rows": [row("naive", 512, 2.0), row("naive", 1024, None), row("fused", 512, 1.0), row("fused", 1024, 4.0),
                 {"implementation": "naive", "len_q": 65, "quantity": "error", "status": "ok", "max_error": 1e-3,
                  "rms_error": 1e-4}],
        "checks": [{"name": "c", "goal": "<= 1", "measured": "0.5", "pass": True}],
        "ceilings": [{"dtype": "bf16", "flops_per_s": 8e14, "bytes_per_s": 4.3e12, "exponentials_per_s": 4.2e12}],
        "block_sizes": [{"family": "f", "block_q": 64, "block_kv": 32, "len_q": n, "median_ms": ms, "tflops": 1 / ms,
                         "resources": "2 of it", "default": True} for n, ms in [(512, 0.5), (4096, 8.0)]],
        "crossover": [{"implementation": "fused", "naive": "naive", "verdict": "faster from T = 100 on"}]}
PEERS = {"context": {"program": "scripts/peers.py", "machine": "M", "seed": 1, "date": "2026-01-02T03:04:05Z"},
         "rows": [row("torch<1>", 512, 0.5, power_w=699.4), row("torch<1>", 1024, 0.0123456)], "checks": []}


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        (self.folder / "ours.json").write_text(json.dumps(OURS))
        (self.folder / "peers.json").write_text(json.dumps(PEERS))

    def run_script(self, script, *flags, **environment):
        run = subprocess.run([sys.executable, "-B", SCRIPTS / script, *flags], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, cwd=self.folder, env=environment or None)
        return run.returncode, run.stdout, run.stderr


class Plot(InFolder):
    def draw(self, quantity):
        flags = ["--quantity", quantity, "-o", "x.svg", "ours.json", "peers.json"]
        self.assertEqual(self.run_script("plot.py", *flags), (0, "", ""))
        return (self.folder / "x.svg").read_bytes()

    def test_same_bytes_and_well_formed(self):
        for quantity in plot.QUANTITIES:
            with self.subTest(quantity=quantity):
                picture = self.draw(quantity)
                self.assertEqual(picture, self.draw(quantity))
                root = xml.etree.ElementTree.fromstring(picture)
                text = "".join(root.itertext())
                self.assertIn("out of memory", text)
                self.assertIn("torch<1>", text)
                self.assertIn(b"currentColor", picture)
                self.assertNotIn(b"2026", picture)
                x, y, width, height = map(float, root.get("viewBox").split())
                for element in root.iter():
                    for key, limit in [("x", width), ("cx", width), ("x1", width), ("y", height), ("cy", height)]:
                        if element.get(key):
                            self.assertTrue(0 <= float(element.get(key)) <= limit, element.attrib)

    def test_a_memory_cross_only_where_memory_failed(self):
        series = plot.series_of([OURS], "causal", "cold", None, plot.QUANTITIES["time"][0])
        self.assertEqual(series, [("naive", False, {512: 2e-3}, {1024: "out of memory"}),
                                  ("fused", False, {512: 1e-3, 1024: 4e-3}, {})])

    def test_what_is_not_supported_is_drawn_as_such(self):
        rows = [row("fused", 512, 1.0), row("other", 512, None, status="unsupported")]
        _, svg = plot.picture([{**OURS, "rows": rows}], "time", "causal", "cold")
        root = xml.etree.ElementTree.fromstring(svg)
        self.assertIn("other, unsupported", [element.text for element in root.iter()])
        rings = [e for e in root.iter() if e.tag.endswith("circle") and e.get("fill") == "none"]
        self.assertEqual([float(ring.get("cy")) for ring in rings], [plot.TOP])

    def test_labels_do_not_cover_each_other(self):
        placed = sorted(plot.spread([10, 10, 10, 11, 200], 0, 300))
        self.assertTrue(all(b - a >= plot.LABEL_HEIGHT - 0.1 for a, b in zip(placed, placed[1:])), placed)

    def test_nothing_to_draw(self):
        code, out, err = self.run_script("plot.py", "--set", "none", "-o", "x.svg", "ours.json")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("no timed row of set none", err)
        self.assertFalse((self.folder / "x.svg").exists())


class Tables(InFolder):
    def table(self, part, *files):
        return result_tables.table(self.folder, files or ["ours.json", "peers.json"], part)

    def test_matrices(self):
        self.assertEqual(self.table("time causal cold"),
                         "| time | T = 512 | T = 1024 |\n| --- | --: | --: |\n"
                         "| `naive` | 2.00 ms | out of memory |\n| `fused` | 1.00 ms | 4.00 ms |\n"
                         "| `torch<1>` | 500 µs | 12.3 µs |")
        self.assertIn("| `naive` | 0.500 | out of memory |", self.table("rate causal cold"))
        self.assertIn("| `fused` | 25.0 % | 25.0 % |", self.table("share causal cold"))
        self.assertIn("| `fused` | 3.00 MiB |", self.table("scratch causal cold"))
        self.assertIn("| `naive` | 4.00 MiB | out of memory |", self.table("peak causal cold"))
        self.assertIn("| `fused` | 1980 | 1980 |", self.table("clock causal cold"))
        self.assertEqual(self.table("power causal cold").splitlines()[::4], ["| W | T = 512 | T = 1024 |", "| `torch<1>` | 699 | - |"])
        self.assertIn("| `fused` | 500 µs (2.00) | 500 µs (8.00) |", self.table("predicted causal cold"))

    def test_other_views(self):
        self.assertIn("| `naive` | 1.0e-03 (1.0e-04) |", self.table("accuracy"))
        self.assertIn("| `fused` | `naive` | faster from T = 100 on |", self.table("crossover"))
        self.assertIn("| c | <= 1 | 0.5 | pass |", self.table("checks"))
        self.assertEqual(self.table("over fused causal cold").splitlines()[2:],
                         ["| `naive` | 2.00 | out of memory |", "| `fused` | 1.00 | 1.00 |",
                          "| `torch<1>` | 0.500 | 0.00309 |"])
        self.assertIn("| bf16 | 800 | 4.30 | 4.20 |", self.table("ceilings"))
        self.assertIn("| `f` | 64×32, default | 2 of it | 500 µs, 2.00 | 8.00 ms, 0.125 |", self.table("block_sizes"))
        self.assertEqual(self.table("context"), "M, random inputs, seed 1, 2026-01-02")
        (self.folder / "rested.json").write_text(json.dumps({**OURS, "rest_seconds": 0.1}))
        self.assertEqual(self.table("context", "rested.json"),
                         "M, a rest of 0.1 s before each repetition, random inputs, seed 1, 2026-01-02")

    def test_a_network(self):
        model = {"layers": 2, "width": 4096, "vocabulary": 4096}
        rows = [{"implementation": name, "dtype": "bf16", "status": status, "tokens": 4096, "context": 512, "batch": 4,
                 "loss": 3.25, "tokens_per_s": 4096 / seconds, "attention_share": part / seconds, "seconds": seconds,
                 "attention_seconds": part}
                for name, status, seconds, part in [("naive", "ok", 0.1, 0.06), ("none", "unsupported", 1.0, 1.0),
                                                    ("cuda_masks", "ok", 0.05, 0.01), ("fused", "ok", 0.06, 0.012)]]
        (self.folder / "network.json").write_text(json.dumps(
            {"rows": rows, "model": model, "throughput": [{"way": "w", "dtype": "bf16", "tokens_per_s": 5e5}]}))
        ours = {**OURS, "rows": [{**row(name, 512, ms), "batch": 4} for name, ms in [("naive", 10.0), ("fused", 2.5)]]}
        (self.folder / "ours.json").write_text(json.dumps(ours))
        self.assertEqual(self.table("network bf16", "network.json").splitlines()[2:],
                         ["| `naive` | 3.250000 | 40,960 | 100 | 60.0 | 60.0 % | 1.00 | 1.00 | 1.00 |",
                          "| `fused` | 3.250000 | 68,267 | 60 | 12.0 | 20.0 % | 5.00 | 1.92 | 1.67 |"])
        self.assertIn("| `fused` | 3.250000 |", self.table("network_losses", "network.json"))
        # Two layers, twice four sequences: four calls, of 15 and 3 ms.
        self.assertEqual(self.table("network_calls 512", "network.json", "ours.json").splitlines()[2:],
                         ["| `naive` | 10000.0 | 15000.0 | 1.50 |", "| `fused` | 2500.0 | 3000.0 | 1.20 |"])
        # 2·(12·2 + 1)·4096²·4096 operations at 8e14/s, and the median of 40 and 48 ms outside attention.
        self.assertIn("| bf16 | 3.4 | 800.0 | 4.3 | 44.0 | 10 % |",
                      self.table("network_outside", "network.json", "ours.json"))
        self.assertIn("| w | bf16 | 500,000 |", self.table("network_throughput", "network.json"))
        for part, words in [("network fp32", "no implementation ran"), ("network_calls 1024", "0 timed rows")]:
            with self.subTest(part=part), self.assertRaisesRegex(ValueError, words):
                self.table(part, "network.json", "ours.json")

    def test_faults_are_named(self):
        for part, words in [("time full cold", "no rows of set full"), ("time", "needs a set"), ("over none causal cold", "no timed rows of none"),

                            ("timing_methods", 'no "timing_methods"')]:
            with self.subTest(part=part), self.assertRaisesRegex(ValueError, words):
                self.table(part)
        with self.assertRaisesRegex(ValueError, "no file none.json"):
            self.table("checks", "none.json")
        self.assertIn("Nothing is recorded", self.table("checks", "machine/benchmark.json", "machine/peers.json"))
        (self.folder / "benchmark.json").write_text(json.dumps(OURS))
        with self.assertRaisesRegex(ValueError, "no file peers.json|no file other"):
            self.table("checks", "benchmark.json", "other/peers.json")

    def test_three_digits(self):
        for value, text in [(0, "0"), (1.2345, "1.23"), (12.345, "12.3"), (123.45, "123"), (0.012345, "0.0123"),
                            (1000, "1000")]:
            self.assertEqual(result_tables.three_digits(value), text)


class Measure(unittest.TestCase):
    """scripts/measure.sh with programs that only say how they were called."""

    def measure(self, *arguments, fails="none", unbuilt="none"):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        folder = pathlib.Path(holder.name)
        (folder / "path").mkdir()
        (folder / "bin").mkdir()
        programs = {"path/nvidia-smi": "echo NVIDIA GeForce RTX 4090"}
        for name in "ch04_cuda_tiled", "ch06_benchmark", "ch08_tensor_cores", "ch09_hopper":
            programs[f"bin/{name}"] = ('echo "${0##*/} $*"\n'
                                       'while (($#)); do [[ $1 == --json ]] && echo "{}" >"$2"; shift; done\n'
                                       f"[[ ${{0##*/}} != {fails} ]]")
        for name, text in programs.items():
            (folder / name).write_text(f"#!/bin/bash\n{text}\n")
            (folder / name).chmod(0o644 if name == f"bin/{unbuilt}" else 0o755)
        done = subprocess.run(
            [SCRIPTS / "measure.sh", "--bin", folder / "bin", "--results", folder / "results", "--python", "false",
             *arguments], env={**os.environ, "PATH": f"{folder / 'path'}:{os.environ['PATH']}"},
            capture_output=True, text=True)
        return done, folder / "results" / "rtx4090"

    def test_every_part_leaves_its_files(self):
        done, results = self.measure("tensor_cores", "hopper", "chapters")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({file.name for file in results.iterdir()} - {"gpt2_124m_cuda.txt", "gpt2_124m_cuda.json"},
                         {"tensor_cores.json", "hopper.json", "hopper_rested.json", "hopper_hunt.json", "ch04_cuda_tiled.json",
                          "ch04_cuda_tiled.txt", "ch08_tensor_cores.json", "ch08_tensor_cores.txt", "ch09_hopper.json",
                          "ch09_hopper.txt"})
        self.assertEqual((results / "ch09_hopper.txt").read_text(),
                         f"ch09_hopper --device cuda --json {results}/ch09_hopper.json\n")
        self.assertIn("the peers are left out", done.stdout)

    def test_a_failure_is_told_at_the_end_and_the_rest_is_measured(self):
        done, results = self.measure("chapters", fails="ch04_cuda_tiled")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ch04_cuda_tiled (exit status 1)", done.stderr)
        self.assertTrue((results / "ch09_hopper.json").exists())

    def test_what_is_not_built_is_told_before_a_folder_is_made(self):
        for part, unbuilt in [("cpu", "ch06_benchmark"), ("hopper", "ch09_hopper"), ("chapters", "ch04_cuda_tiled")]:
            with self.subTest(part=part):
                done, results = self.measure(part, unbuilt=unbuilt)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, rf"\Ameasure\.sh: [^\n]*/{unbuilt} is not built[^\n]*\n\Z")
                self.assertFalse(results.exists())
        done, results = self.measure("tensor_cores", "peers")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("part peers needs the shapes of", done.stderr)
        self.assertFalse(results.exists())

    def test_help(self):
        for script in "measure.sh", "gpu_check.sh", "exercise.sh":
            with self.subTest(script=script):
                done = subprocess.run([SCRIPTS / script, "--help"], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(f"scripts/{script} [", done.stdout)
                self.assertNotIn("set -", done.stdout)

    def test_a_part_that_is_none(self):
        done, _ = self.measure("everything")
        self.assertEqual(done.returncode, 2)
        self.assertIn('"everything" is neither a flag nor a part', done.stderr)


class Sentences(unittest.TestCase):
    """Figures in sentences, which no marker keeps in step, are those of the results."""
    ROOT = SCRIPTS.parent
    RESULTS = ROOT / "docs/results/h200"

    def rows(self, *names):
        return [row for name in names for row in json.loads((self.RESULTS / name).read_text())["rows"]]

    def contains(self, page, *figures):
        text = (self.ROOT / page).read_text(encoding="utf-8")
        for figure in figures:
            with self.subTest(page=page, figure=figure):
                self.assertTrue(figure in text, f"{page}: the results say \"{figure}\"")

    def times_as_fast(self, rows, name, others, shapes, cache="cold"):
        """The range over the lengths of the fastest other's time over ours."""
        ms = {(row["implementation"], row["len_q"]): row["median_ms"] for row in rows
              if (row.get("set"), row.get("cache"), row["status"]) == (shapes, cache, "ok")}
        ratios = [min(ms[other, length] for other in others) / ms[name, length]
                  for implementation, length in ms if implementation == name]
        return min(ratios), max(ratios)

    def test_the_headline(self):
        """With a rest before each repetition, and under lasting load."""
        for names in ("hopper_rested.json", "hopper_rested_peers.json"), ("hopper.json", "hopper_peers.json"):
            rows = self.rows(*names)
            for shapes in "causal", "full", "d128", "d128_full":
                low, high = self.times_as_fast(rows, "cuda_hopper", ["torch_cudnn", "torch_flash"], shapes)
                between = "between {:.2f} and {:.2f} times" if low < 1 else "{:.2f} to {:.2f} times"
                self.contains("README.md", between.format(low, high))

    def test_chapter_9(self):
        page = "chapters/09_hopper/README.md"
        document = json.loads((self.RESULTS / "ch09_hopper.json").read_text())
        rate = {(row["implementation"].removeprefix("cuda_"), row["len_q"]): row["tflops"] for row in document["rows"]
                if "tflops" in row}

        def gain(step, before, length):
            return round(100 * (rate[step, length] / rate[before, length] - 1))

        self.contains(page, f"{rate['wgmma', 4096]:.0f} TFLOP/s at 4k and {rate['wgmma', 16384]:.0f} at 16k")
        self.contains(page, "{} % at 512 tokens, {} % at 1k, {} % at 4k, {} % at 16k.".format(
            *(gain("producer", "wgmma", length) for length in (512, 1024, 4096, 16384))))
        self.contains(page, "{} % at 4k, {} % at 8k, {} % at 16k: with two".format(
            *(gain("overlap", "producer", length) for length in (4096, 8192, 16384))))
        self.contains(page, "{} % at 4k and {} % at 16k; at 512 tokens a loss of {} %".format(
            gain("warpgroups", "overlap", 4096), gain("warpgroups", "overlap", 16384),
            -gain("warpgroups", "overlap", 512)))
        self.contains(page, "{} % at 512 tokens, {} % at 1k, {} % at 2k, {} % at 4k and {} % at 16k: the count".format(
            *(gain("diagonal", "warpgroups", length) for length in (512, 1024, 2048, 4096, 16384))))
        self.contains(page, "{} % at 1k, {} % at 2k, {} % at 4k, {} % at 8k".format(
            *(gain("persistent", "diagonal", length) for length in (1024, 2048, 4096, 8192))))
        self.contains(page, "{} % at 512 tokens, {} % at 2k, {} % at 4k, {} % at 8k".format(
            *(gain("hopper_lazy", "persistent", length) for length in (512, 2048, 4096, 8192))))
        self.contains(page, ", ".join(f"{rate['hopper', length]:.0f}" for length in (512, 1024, 2048, 4096, 8192))
                      + f" and {rate['hopper', 16384]:.0f}")
        self.choice_of_sizes(page, document["sizes"])
        hunt = json.loads((self.RESULTS / "hopper_hunt.json").read_text())["hunt"]
        for key in "launches", "cases", "delayed_launches", "graph_launches":
            self.contains(page, f"{hunt[key]:,}")

    def choice_of_sizes(self, page, timed):
        """What the model of chapter 9 is off by, what its choice loses, and what one size for all would."""
        off = [abs(math.log(t["predicted_us"] / t["measured_us"])) for t in timed]
        problems = {}
        for t in timed:
            problems.setdefault((t["head_dim"], t["causal"], t["batch"], t["length"]), []).append(t)
        chosen, of_size = [], {64: {}, 128: {}}
        for (head_dim, *_), sizes in problems.items():
            best = min(t["measured_us"] for t in sizes)
            chosen.append(min(sizes, key=lambda t: t["predicted_us"])["measured_us"] / best - 1)
            for t in sizes:
                of_size[head_dim].setdefault(t["size"], []).append(t["measured_us"] / best - 1)
        low, high = ({d: 100 * choose(map(statistics.mean, sizes.values())) for d, sizes in of_size.items()}
                     for choose in (min, max))
        self.contains(
            page, f"tries all sizes with {len(problems)} problems",
            f"off by {100 * statistics.median(off):.0f} % on the median, and by more than a seventh in "
            f"{100 * sum(x > 1 / 7 for x in off) / len(off):.0f} % of its predictions",
            f"loses {100 * statistics.mean(chosen):.1f} % on the mean to the best, and {100 * max(chosen):.0f} % at most",
            f"{low[64]:.0f} to {high[64]:.0f} % on the mean with 64 channels, depending on which, and "
            f"{low[128]:.0f} to {high[128]:.0f} % with 128")

    def test_chapter_8(self):
        rows = self.rows("tensor_cores.json", "tensor_cores_peers.json")
        for channels, sets in (64, ("causal", "full")), (128, ("d128", "d128_full")):
            ranges = [self.times_as_fast(rows, "cuda_tensor_cores", ["torch_flash"], shapes) for shapes in sets]
            low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
            of = "times as fast for 64 channels" if channels == 64 else "times for 128"
            self.contains("chapters/08_tensor_cores/README.md", f"{low:.2f} to {high:.2f} {of}")

    def test_chapter_6(self):
        rows = self.rows("benchmark.json", "peers.json")
        page = "chapters/06_benchmark/README.md"
        for shapes in "causal", "full", "d128":
            low, high = self.times_as_fast(rows, "cuda_hopper", ["torch_cudnn"], shapes)
            self.contains(page, f"{low:.2f} to {high:.2f} times")
        for name in "cuda_tensor_cores", "cuda_hopper":
            low, high = self.times_as_fast(rows, name, ["torch_flash"], "causal")
            self.contains(page, f"{1 / high:.2f} to {1 / low:.2f}")
        low, high = self.times_as_fast(rows, "cuda_exp2", ["torch_flash"], "causal")
        self.contains(page, f"{1 / high:.1f} to {1 / low:.1f} times as long")

    def test_chapter_7(self):
        rows = {(row["implementation"], row["dtype"]): row for row in self.rows("gpt2_124m_cuda.json")
                if row["status"] == "ok"}
        half = {name: row for (name, dtype), row in rows.items() if dtype == "bf16"}
        low, high = (choose(half, key=lambda name: half[name]["loss"]) for choose in (min, max))
        naive, hopper = half["cuda_naive"], half["cuda_hopper"]
        share = hopper["attention_share"]
        self.contains(
            "chapters/07_gpt2_124m/README.md",
            f"from {half[low]['loss']:.6f} with `{low}` to {half[high]['loss']:.6f} with `{high}`",
            f"with `cuda_naive` attention is {100 * naive['attention_share']:.0f} % of the time",
            f"the whole {naive['seconds'] / half['cuda_tensor_cores']['seconds']:.2f} times as fast",
            f"`cuda_hopper` {naive['seconds'] / hopper['seconds']:.2f} times",
            f"{hopper['tokens_per_s'] * 1e-6:.2f} million tokens a second",
            *(f"`{name}` {half[name]['tokens_per_s'] * 1e-6:.2f}" for name in
              ("cuda_tensor_cores", "cuda_naive", "cuda_exp2")),
            f"With `cuda_hopper`, {100 * share:.0f} % of the time is attention",
            f"= {1 / (1 - share):.2f}$ times as fast",
            f"gains {100 * (rows['cuda_naive', 'fp32']['seconds'] / rows['cuda_exp2', 'fp32']['seconds'] - 1):.0f} %")
        self.assertLess(half[high]["loss"] - half[low]["loss"], 5e-4)
        self.assertEqual(len({half[f"cuda_{step}"]["loss"] for step in
                              ("mma", "ldmatrix", "swizzle", "registers", "cp_async", "masks")}), 1)


class Pictures(InFolder):
    MARKER = "<!-- plot: r/ours.json r/peers.json#time causal cold img/x.svg -->\n"

    def test_embed_draws_and_checks(self):
        (self.folder / "r").mkdir()
        (self.folder / "page").mkdir()
        page = self.folder / "page" / "README.md"
        page.write_text(self.MARKER + "<!-- /plot -->\n")
        (self.folder / "r" / "ours.json").write_text(json.dumps(OURS))
        (self.folder / "r" / "peers.json").write_text(json.dumps(PEERS))
        check = ["--check", "--root", str(self.folder)]
        self.assertEqual(self.run_script("embed.py", *check)[0], 1)
        self.assertFalse((self.folder / "img").exists())
        self.assertEqual(self.run_script("embed.py", "--root", str(self.folder))[0], 0)
        self.assertIn("![Time of one call, M](../img/x.svg)", page.read_text())
        self.assertEqual(self.run_script("embed.py", *check), (0, "", ""))
        (self.folder / "img" / "x.svg").write_text("stale")
        code, out, _ = self.run_script("embed.py", *check)
        self.assertEqual((code, out), (1, "page/README.md: img/x.svg is not what the results give\n"))

    def test_embed_without_results_and_with_faults(self):
        page = self.folder / "README.md"
        page.write_text("<!-- plot: r/benchmark.json#time causal cold img/x.svg -->\n<!-- /plot -->\n")
        self.assertEqual(self.run_script("embed.py", "--root", str(self.folder))[0], 0)
        self.assertIn("Nothing is recorded", page.read_text())
        for target, words in [("ours.json#time full cold x.svg", "no timed row"),
                              ("ours.json#speed causal cold x.svg", "is none of time"),
                              ("ours.json#time", "needs a quantity"), ("none.json#time causal cold x.svg", "no file")]:
            with self.subTest(target=target):
                page.write_text(f"<!-- plot: {target} -->\n<!-- /plot -->\n")
                code, _, err = self.run_script("embed.py", "--root", str(self.folder))
                self.assertEqual(code, 1)
                self.assertIn(words, err)


class Peers(InFolder):
    def test_without_pytorch_it_says_so(self):
        (self.folder / "torch.py").write_text("raise ImportError('none here')\n")
        for script in "peers", "peers_cpu":
            with self.subTest(script=script):
                code, out, err = self.run_script(f"{script}.py", PYTHONPATH=str(self.folder))
                self.assertEqual((code, out), (1, ""))
                self.assertRegex(err, rf"\A{script}\.py: PyTorch [^\n]*none here[^\n]*\n\Z")

    def test_what_is_wrong_is_named_before_pytorch_is_looked_for(self):
        (self.folder / "torch.py").write_text("raise ImportError('none here')\n")
        (self.folder / "odd.json").write_text(json.dumps({"rows": [
            {"batch": 1, "heads_q": 3, "heads_kv": 2, "len_q": 8, "len_kv": 8, "head_dim": 64, "dtype": "bf16",
             "causal": True, "set": "causal", "cache": "warm"}]}))
        (self.folder / "text.json").write_text("no JSON")
        huge = "9" * 5000
        for script, flags, status, words in [
                ("peers_cpu.py", ["--threads", "0"], 2, '"0" is not a whole number from 1 to 1024'),
                ("peers_cpu.py", ["--lengths", "64,x"], 2, '"x" is not a whole number'),
                ("peers_cpu.py", ["--heads", "-1"], 2, '"-1" is not a whole number'),
                ("peers_cpu.py", ["--json", "none/x.json"], 1, "none: no such folder"),
                ("peers.py", ["--lengths", "1k"], 2, '"1k" is not a whole number from 1 to 16777216'),
                ("peers.py", ["--lengths", "64,"], 2, '"" is not a whole number'),
                ("peers.py", ["--heads", "3", "--heads-kv", "2"], 2, "3 query heads are no multiple of 2"),
                ("peers.py", ["--batch", "1048576", "--heads", "1048576", "--lengths", "1048576"], 2, "2^60"),
                ("peers.py", ["--seed", huge], 2, "is not a whole number"),
                ("peers.py", ["--seed", "18446744073709551616"], 2, "is not a whole number"),
                ("peers.py", ["--threads", "1000000"], 2, "from 0 to 1024"),
                ("peers.py", ["--threads", "-1"], 2, "from 0 to 1024"),
                ("peers.py", ["--memory-limit", "nan"], 2, '"nan" is not a number'),
                ("peers.py", ["--rest", "x"], 2, '"x" is not a number from 0 to 60'),
                ("peers.py", ["--repetitions", "0"], 2, "from 1 to 1000"),
                ("peers.py", ["--implementations", "("], 2, "--implementations"),
                ("peers.py", ["--dtype", "fp8"], 2, "--dtype"),
                ("peers.py", ["--like", "none.json"], 1, "--like none.json: No such file"),
                ("peers.py", ["--like", "text.json"], 1, "no results of ch06_benchmark"),
                ("peers.py", ["--like", "odd.json"], 1, "3 query heads are no multiple of 2"),
                ("plot.py", ["-o", "x.svg", "none.json"], 2, "none.json: No such file")]:
            with self.subTest(script=script, flags=[flag[:30] for flag in flags]):
                code, out, err = self.run_script(script, *flags, PYTHONPATH=str(self.folder))
                self.assertEqual((code, out), (status, ""))
                self.assertRegex(err, rf"\A{script}: [^\n]+\n\Z")
                self.assertIn(words, err)

    def test_what_was_not_timed_is_no_success(self):
        def faults(*statuses):
            return list(peers.faults([{"name": f"n{i}", "status": status, "reason": f"r{i}"}
                                      for i, status in enumerate(statuses)]))
        self.assertEqual(faults("unsupported", "ok", "out_of_memory"), [])
        self.assertEqual(faults("unsupported", "out_of_memory"), ["no row was timed, the first: n0: unsupported: r0"])
        self.assertEqual(faults("ok", "failed", "failed"), ["2 of 3 rows failed, the first: n1: r1"])


if __name__ == "__main__":
    unittest.main()
