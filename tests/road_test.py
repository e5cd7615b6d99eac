#!/usr/bin/env python3
"""The road of the course, on made-up results: which bars it draws, and how long they are."""
import json
import math
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "site")]
sys.dont_write_bytecode = True
import road  # noqa: E402


def call(name, milliseconds, **more):
    return {"implementation": name, **road.CALL, "median_ms": milliseconds, "tflops": 100 / milliseconds, **more}


def gpt2(name, dtype, seconds, **more):
    return {"implementation": name, "device": "cuda", "dtype": dtype, "tokens": 65536, "status": "ok", "attention_seconds": seconds,
            "loss_delta": 1e-8, **more}


def results(program, rows, **more):
    return {"context": {"program": program, "gpu": "A card", "cores": 3, "date": "2026-01-02T03:04:05Z"}, "rows": rows, **more}


class Road(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        for source in [*ROOT.glob("chapters/*/README.md"), *ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "docs/site/data/memory.json"]:
            target = self.root / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        self.folder = self.root / "docs/results/h200"
        self.folder.mkdir(parents=True)
        self.write("gpt2.json", results("ch07_gpt2_124m", [gpt2("cuda_naive", "fp32", 0.1), gpt2("cuda_naive", "bf16", 0.05)], model={"name": "gpt2-124m"}))
        self.write("ch04_cuda_tiled.json", results("ch04_cuda_tiled", [call("cuda_naive", 5.0), call("cuda_naive", 9.0, causal=False), call("cuda_tiled", 4.0)]))
        self.write("ch05_exp2.json", results("ch05_exp2", [call("cuda_tiled", 8.0), call("cuda_exp2", 2.0)]))
        self.write("ch08_tensor_cores.json", results("ch08_tensor_cores", [call("cuda_mma", 1.0), call("cuda_lazy", 0.5), call("cuda_tensor_cores", 0.25),
                                                                            call("cuda_tensor_cores", 7.0, len_q=512)]))

    def write(self, name, document):
        (self.folder / name).write_text(json.dumps(document), encoding="utf-8")

    def bars(self):
        """{(implementation, kind): (length, time as text)}"""
        found, name = {}, None
        for line in road.draw(self.root).splitlines():
            if named := re.search(r'x="40" y="\d+">(\w+_\w+)</text>', line):
                name = named[1]
            if bar := re.match(r'<rect class="(\w+)" x="202".* width="([\d.]+)".*>([\d.]+ \w+)</text>', line):
                found[name, bar[1]] = (float(bar[2]), bar[3])
        return found

    def test_which_bars_and_how_long(self):
        bars = self.bars()
        seconds = {("cuda_naive", "fp32"): 0.1, ("cuda_naive", "bf16"): 0.05, ("cuda_naive", "call"): 5e-3, ("cuda_tiled", "call"): 4e-3,
                   ("cuda_exp2", "call"): 2e-3, ("cuda_mma", "call"): 1e-3, ("cuda_tensor_cores", "call"): 0.25e-3}
        self.assertEqual({key: text for key, (_, text) in bars.items()}, {key: road.time_text(value) for key, value in seconds.items()})
        # One scale for all: a factor of ten is as long everywhere.
        decade = (bars["cuda_naive", "fp32"][0] - bars["cuda_tensor_cores", "call"][0]) / math.log10(0.1 / 0.25e-3)
        for key, value in seconds.items():
            self.assertAlmostEqual(bars[key][0], bars["cuda_tensor_cores", "call"][0] + decade * math.log10(value / 0.25e-3), delta=0.2)

    def test_words_before_and_after_chapter_9_is_measured(self):
        drawn = road.draw(self.root)
        self.assertIn("mma: from 100 to 400 TFLOP/s in 3 kernels.", drawn)
        self.assertIn("TMA, wgmma and roles: not measured yet.", drawn)
        self.write("ch09_hopper.json", results("ch09_hopper", [call("cuda_wgmma", 0.4), call("cuda_overlap", 0.3), call("cuda_hopper", 0.2)]))
        self.assertIn("TMA, wgmma and roles: from 250 to 500 TFLOP/s in 3 kernels.", road.draw(self.root))
        bars = self.bars()
        self.assertEqual(bars["cuda_wgmma", "call"][1], "0.4 ms")
        self.assertEqual(bars["cuda_hopper", "call"][1], "0.2 ms")
        self.assertNotIn(("cuda_overlap", "call"), bars)
        # In GPT-2 it has all its bars, the call among them.
        self.write("gpt2_more.json", results("ch07_gpt2_124m", [gpt2("cuda_overlap", "bf16", 0.01)], model={"name": "gpt2-124m"}))
        self.assertIn(("cuda_overlap", "bf16"), self.bars())
        self.assertIn(("cuda_overlap", "call"), self.bars())

    def test_an_implementation_of_no_chapter_is_named(self):
        self.write("ch08_tensor_cores.json", results("ch08_tensor_cores", [call("cuda_unheard_of", 1.0)]))
        with self.assertRaisesRegex(ValueError, "cuda_unheard_of belongs to no chapter"):
            road.draw(self.root)


if __name__ == "__main__":
    unittest.main()
