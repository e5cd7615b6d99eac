#!/usr/bin/env python3
"""The pictures of chapter 9's results, on made-up results: bars of the ladder and of the ablations, and the timeline."""
import copy
import json
import pathlib
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from result_scripts_test import InFolder  # noqa: E402

import plot_bars  # noqa: E402
import result_tables  # noqa: E402
import timeline_data  # noqa: E402
import timeline_picture  # noqa: E402


def step(name, length, milliseconds, predicted, **more):
    return {"implementation": f"cuda_{name}", "device": "cuda", "batch": 4, "heads_q": 12, "len_q": length, "head_dim": 64, "dtype": "bf16",
            "causal": True, "status": "ok", "median_ms": milliseconds, "tflops": 100 / milliseconds, "predicted_ms": predicted,
            "clock_mhz": 1755.4, **more}


def event(schedule, warpgroup, phase, begin, end, tile=0):
    return {"schedule": schedule, "block": 0, "warpgroup": warpgroup, "tile": tile, "phase": phase, "begin": begin, "end": end}


RESULTS = {
    "context": {"program": "ch09_hopper", "machine": "M", "gpu": "A <card>", "date": "2026-01-02T03:04:05Z"}, "checks": [],
    "rows": [step("wgmma", 4096, 0.5, 0.4), step("wgmma", 512, 0.5, 0.4), step("producer", 4096, 0.25, 0.3, clock_mhz=1900),
             {"implementation": "cuda_hopper", "len_q": 4096, "quantity": "error", "status": "ok", "max_error": 1e-3}],
    "ablations": [{"variant": "the kernel as it is", "T4096": 400.0, "T512": 100.0}, {"variant": "no overlap", "T4096": 320.0, "T512": 100.0},
                  {"variant": "turns & more", "T4096": 440.0, "T512": 50.0},
                  {"variant": "the kernel as it is", "head_dim": 128, "T4096": 600.0}, {"variant": "no diagonal", "head_dim": 128, "T4096": 500.0}],
    "timeline": [event("one", 0, "waits for keys", 0, 10), event("one", 0, "products", 10, 40), event("one", 0, "finishes", 40, 40),
                 event("one", 1, "softmax", 5, 30, 2), event("two", 0, "waits for the sum", 3, 1003)],
    "timeline_clock": "cycles", "timeline_problem": "B1 H1 Tq64 Tk64 d64 bf16"}


def drawn(svg):
    """[(class or paint, x, width)] of bars, and all text."""
    root = xml.etree.ElementTree.fromstring(svg)
    bars = [(e.get("class") or e.get("fill"), float(e.get("x")), float(e.get("width"))) for e in root.iter()
            if e.tag.endswith("rect") and e.get("x")]
    return bars, [e.text for e in root.iter() if e.tag.endswith("text")]


class Bars(unittest.TestCase):
    def test_the_ladder(self):
        title, svg = plot_bars.ladder(RESULTS, 4096)
        self.assertEqual(title, "The steps at T = 4,096, A <card>")
        bars, text = drawn(svg)
        measured = [width for kind, _, width in bars if kind == "m"][1:]  # the first is the legend's
        predicted = [width for kind, _, width in bars if kind == "w"][1:]
        # 100 GFLOP: 200 and 400 TFLOP/s measured, 250 and 333 predicted.
        self.assertAlmostEqual(measured[1] / measured[0], 400 / 200, delta=0.01)
        self.assertAlmostEqual(predicted[0] / measured[0], 0.5 / 0.4, delta=0.01)
        self.assertAlmostEqual(predicted[1] / measured[1], 0.25 / 0.3, delta=0.01)
        for words in ("wgmma", "producer", "200", "400", "250", "333", "B4 H12 d64 bf16, causal, warm L2, clock 1755 to 1900 MHz"):
            self.assertIn(words, text)
        self.assertEqual(svg, plot_bars.ladder(RESULTS, 4096)[1])
        self.assertNotIn("2026", svg)

    def test_the_ablations(self):
        _, svg = plot_bars.ablations(RESULTS, 4096)
        bars, text = drawn(svg)
        (slow, at, longer), (fast, begin, shorter) = bars
        self.assertEqual((slow, fast), ("slow", "fast"))
        # 400 over 320 is a quarter more time; 400 over 440 is 9 % less, and lies left of the line.
        self.assertAlmostEqual(longer / shorter, 0.25 / (1 - 400 / 440), delta=0.02)
        self.assertAlmostEqual(begin + shorter, at, delta=0.11)
        for words in ("no overlap", "+25 %", "turns & more", "−9 %"):
            self.assertIn(words, text)
        self.assertIn("The line is the kernel as it is", " ".join(text))

    def test_the_ablations_of_one_head_dim_alone(self):
        # Rows without a head_dim are for 64; so are those that say so.
        said = copy.deepcopy(RESULTS)
        for row in said["ablations"]:
            row.setdefault("head_dim", 64)
        self.assertEqual(plot_bars.ablations(said, 4096), plot_bars.ablations(RESULTS, 4096))
        title, svg = plot_bars.ablations(RESULTS, 4096, 128)
        bars, text = drawn(svg)
        self.assertEqual(title, "Time without one idea, or with one more, d128, T = 4,096")
        self.assertEqual([kind for kind, *_ in bars], ["slow"])
        self.assertIn("+20 %", text)  # 600 over 500, and not 400 over 500
        self.assertNotIn("no diagonal", plot_bars.ablations(RESULTS, 4096)[1])
        with self.assertRaisesRegex(ValueError, "no variant was measured at T = 512, d128"):
            plot_bars.ablations(RESULTS, 512, 128)

    def test_everything_lies_inside(self):
        for draw in (plot_bars.ladder, plot_bars.ablations):
            root = xml.etree.ElementTree.fromstring(draw(RESULTS, 4096)[1])
            _, _, width, height = map(float, root.get("viewBox").split())
            for e in root.iter():
                if e.get("x"):
                    self.assertTrue(0 <= float(e.get("x")) <= width - float(e.get("width") or 0), e.attrib)
                    self.assertTrue(0 <= float(e.get("y")) <= height, e.attrib)

    def test_nothing_to_draw(self):
        for draw, words in [(plot_bars.ladder, "no step"), (plot_bars.ablations, "no variant")]:
            with self.assertRaisesRegex(ValueError, f"{words} was measured at T = 1024"):
                draw(RESULTS, 1024)
        self.assertEqual([plot_bars.signed(c) for c in (0.123, -0.05, 0.004, -0.004)], ["+12 %", "−5 %", "0 %", "0 %"])


class Timeline(unittest.TestCase):
    def test_the_short_form_holds_every_event(self):
        short = timeline_data.compact(RESULTS)
        self.assertEqual((short["clock"], short["problem"]), ("cycles", "B1 H1 Tq64 Tk64 d64 bf16"))
        self.assertEqual(short["lanes"][0], {"schedule": "one", "block": 0, "warpgroup": 0, "begin": 0,
                                             "events": [[0, 0, 10], [2, 0, 40], [6, 0, 40]]})
        self.assertEqual(short["lanes"][1]["events"], [[3, 2, 30]])
        shares = timeline_data.shares(short)["one"]
        self.assertEqual([round(65 * share) for share in shares], [10, 0, 30, 25, 0, 0, 0, 0])

    def test_gaps_and_unknown_phases_are_refused(self):
        for i, change, words in [(1, {"begin": 11}, "an event from 11 to 40 after 10"), (1, {"end": 9}, "from 10 to 9"),
                                 (0, {"phase": "sleeps"}, '"sleeps"')]:
            wrong = copy.deepcopy(RESULTS)
            wrong["timeline"][i].update(change)
            with self.assertRaisesRegex(ValueError, words):
                timeline_data.compact(wrong)

    def test_phases_are_those_of_the_program(self):
        source = (pathlib.Path(__file__).resolve().parent.parent / "chapters/09_hopper/timeline.cpp").read_text(encoding="utf-8")
        for name in timeline_data.NUMBER:
            self.assertIn(f'return "{name}";', source)
        self.assertEqual(source.split("name_of(TracePhase phase)")[1].split("\n}\n")[0].count("return"), len(timeline_data.PHASES))

    def test_drawn_to_scale_in_cycles_and_in_order_else(self):
        short = timeline_data.compact(RESULTS)
        title, svg = timeline_picture.picture(short, "A <card>")
        self.assertEqual(title, "What the warpgroups do when, measured")
        self.assertIn("A <card>, B1 H1 Tq64 Tk64 d64 bf16: the first 1,003 cycles.", drawn(svg)[1])
        bars, text = drawn(svg)
        bars = [bar for bar in bars[-5:] if bar[0] != "box"]  # behind the legend's; a wait has an outline, too
        self.assertEqual([kind for kind, *_ in bars], ["orange", "blue", "url(#orange)"])
        products, softmax, wait = bars
        self.assertAlmostEqual((wait[2] + 0.8) / (products[2] + 0.8), 1000 / 30, delta=0.5)
        self.assertAlmostEqual((softmax[1] - products[1]) / wait[2], (5 - 10) / 1000, delta=0.001)
        order = {**short, "clock": "turns of the executor's threads"}
        places = timeline_data.schedules(order)
        self.assertEqual([events for _, events in places["one"]], [[(0, 0, 0, 2), (2, 0, 2, 4), (6, 0, 4, 4)], [(3, 2, 1, 3)]])
        title, svg = timeline_picture.picture(order)
        self.assertIn("in order, not in time", title)
        self.assertIn("lengths mean nothing", " ".join(drawn(svg)[1]))


class Pages(InFolder):
    """From results to the page, by scripts/embed.py."""
    PAGE = ("<!-- plot: r/ch09_hopper.json#ladder 4096 img/ladder.svg -->\n<!-- /plot -->\n"
            "<!-- plot: r/ch09_hopper.json#ablations 4096 img/ablations.svg -->\n<!-- /plot -->\n"
            "<!-- plot: r/ch09_hopper.json#ablations 4096 d128 img/ablations-128.svg -->\n<!-- /plot -->\n"
            "<!-- plot: r/ch09_hopper.json data/timeline.json#timeline img/timeline.svg -->\n<!-- /plot -->\n")

    def test_words_before_and_pictures_after_it_was_measured(self):
        page = self.folder / "README.md"
        page.write_text(self.PAGE)
        (self.folder / "data").mkdir()
        recorded = {**timeline_data.compact(RESULTS), "clock": "turns"}
        (self.folder / "data" / "timeline.json").write_text(json.dumps(recorded))
        root = ["--root", str(self.folder)]
        self.assertEqual(self.run_script("embed.py", *root)[0], 0)
        self.assertEqual(page.read_text().count("Nothing is recorded"), 3)
        self.assertIn("![What the warpgroups do when, in order, not in time](img/timeline.svg)", page.read_text())
        self.assertEqual([path.name for path in (self.folder / "img").iterdir()], ["timeline.svg"])
        (self.folder / "r").mkdir()
        (self.folder / "r" / "ch09_hopper.json").write_text(json.dumps(RESULTS))
        self.assertEqual(self.run_script("embed.py", "--check", *root)[0], 1)
        self.assertEqual(self.run_script("embed.py", *root)[0], 0)
        for words in ("![The steps at T = 4,096, A <card>](img/ladder.svg)", ", d64, T = 4,096](img/ablations.svg)", ", d128, T = 4,096](img/ablations-128.svg)", "when, measured](img/timeline.svg)"):
            self.assertIn(words, page.read_text())
        self.assertNotIn("Nothing", page.read_text())
        self.assertEqual(self.run_script("embed.py", "--check", *root), (0, "", ""))

    def test_faults_are_named(self):
        (self.folder / "ch09_hopper.json").write_text(json.dumps(RESULTS))
        for paths, words, said in [(["ch09_hopper.json"], ["ladder", "4k"], "ladder needs"), (["ch09_hopper.json"] * 2, ["ablations", "4096"], "needs one file"),
                                   (["ch09_hopper.json"], ["ablations", "4096", "128"], "ablations needs"), (["ch09_hopper.json"], ["ladder", "4096", "d128"], "ladder needs"),
                                   (["ch09_hopper.json"], ["ablations", "4096", "d96"], "no variant was measured at T = 4096, d96"),
                                   (["ch09_hopper.json"], ["ladder", "8192"], "no step"), (["none.json", "ours.json"], ["timeline"], "no timeline in none.json, ours.json")]:
            with self.subTest(words=words), self.assertRaisesRegex(ValueError, said):
                result_tables.picture(self.folder, paths, words)


if __name__ == "__main__":
    unittest.main()
