"""The moving picture of chapter 9's timeline, against what the executor recorded and against made-up results of a GPU.

What should be seen is worked out here from the program's events, in another way than by the picture."""
import json
import pathlib
import shutil
import sys
import tempfile

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from site_browser import ROOT, Browser

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "site")]
from timeline_data import PHASES  # noqa: E402
from widgets import write_data  # noqa: E402

RECORDED = ROOT / "docs/site/data/timeline.json"
NAMES = [phase[0] for phase in PHASES]


def events_of(recorded):
    """The program's events again, from the short form."""
    events = []
    for lane in recorded["lanes"]:
        begin = lane["begin"]
        for phase, tile, end in lane["events"]:
            events.append({"schedule": lane["schedule"], "block": lane["block"], "warpgroup": lane["warpgroup"], "tile": tile,
                           "phase": NAMES[phase], "begin": begin, "end": end})
            begin = end
    return events


def made_up():
    """A GPU's results with two schedules of two warpgroups, one of which begins late, and a phase without a length."""
    events, counts = [], {}
    for schedule, longer in (("no overlap", 3), ("overlap", 2)):
        for warpgroup in (0, 1):
            clock = 37 * warpgroup
            for i in range(60):
                length = [40, 0, 130, 210 * longer, 25, 11][i % 6] + 7 * ((i // 6) % 3) * (i % 6 == 2)
                events.append({"schedule": schedule, "block": 0, "warpgroup": warpgroup, "tile": 4 * (i // 30), "phase": NAMES[i % 6],
                               "begin": clock, "end": clock + length})
                clock += length
        counts[schedule] = clock
    context = {"program": "ch09_hopper", "gpu": "A card", "commit": "abc", "date": "2026-01-02T03:04:05Z"}
    return {"context": context, "rows": [], "checks": [], "timeline": events, "timeline_clock": "cycles",
            "timeline_problem": "B1 H1 Tq64 Tk64 d64 bf16"}


class Timeline(Browser):
    def select(self, label):
        return Select(self.one(f".widget select[aria-label='{label}']"))

    def bars(self):
        """{(schedule, lane, phase, begin, end)} of what is drawn."""
        return {tuple(bar) for bar in self.driver.execute_script(
            """return Array.from(document.querySelectorAll('.widget .event')).map(e =>
               [e.dataset.schedule, e.dataset.lane, e.dataset.phase, +e.dataset.begin, +e.dataset.end])""")}

    def press(self, *keys):
        # The drawing is SVG: the keys go to what has the focus.
        self.driver.execute_script("document.querySelector('.widget svg').focus()")
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def place_of(self, events, order):
        """{schedule: {clock: place on the axis}}"""
        places = {}
        for schedule in {e["schedule"] for e in events}:
            clocks = sorted({clock for e in events if e["schedule"] == schedule for clock in (e["begin"], e["end"])})
            places[schedule] = {clock: clocks.index(clock) if order else clock for clock in clocks}
        return places

    def look(self, events, order):
        """Every event in the whole view, the words at each of the first moments, and the shares, for each pair."""
        places = self.place_of(events, order)
        names = list(dict.fromkeys(e["schedule"] for e in events))
        self.assertEqual([option.text for option in self.select("Above").options], names)
        expected = lambda shown: {(e["schedule"], f"warpgroup {e['warpgroup']}", e["phase"], places[e["schedule"]][e["begin"]],
                                   places[e["schedule"]][e["end"]]) for e in events if e["schedule"] in shown and e["begin"] < e["end"]}
        for above, below in zip(names, [*names[1:], ""]):
            self.select("Above").select_by_value(above)
            self.select("Below").select_by_value(below)
            self.press("0")
            self.assertEqual(self.bars(), expected({above, below}), (above, below))
        self.shares(events, names)
        above, below = names[0], names[1]
        self.select("Above").select_by_value(above)
        self.select("Below").select_by_value(below)
        self.press(Keys.HOME)
        moments = sorted({at for name in (above, below) for at in places[name].values()})
        for moment in moments[:12]:
            self.words(events, places, (above, below), moment, moments[-1])
            self.press(Keys.ARROW_RIGHT)
        self.press(Keys.END)
        self.words(events, places, (above, below), moments[-1], moments[-1])
        self.press(Keys.ARROW_LEFT)
        self.words(events, places, (above, below), moments[-2], moments[-1])

    def words(self, events, places, shown, moment, last):
        self.assertRegex(self.text(".widget .place"), f"^(Change|Clock) {moment:,} of {last:,}$")
        self.assertEqual(len(self.all(".widget line.moment")), len(set(shown)))
        said = dict(self.driver.execute_script("""return Array.from(document.querySelectorAll('.widget .say li'))
            .map(l => [l.dataset.schedule + '|' + l.dataset.lane, l.textContent])"""))
        for schedule in shown:
            for warpgroup in {e["warpgroup"] for e in events if e["schedule"] == schedule}:
                lane = [e for e in events if e["schedule"] == schedule and e["warpgroup"] == warpgroup]
                at = places[schedule]
                now = [e for e in lane if at[e["begin"]] <= moment < at[e["end"]]]
                text = said.pop(f"{schedule}|warpgroup {warpgroup}")
                self.assertTrue(text.startswith(f"warpgroup {warpgroup} ({schedule}): "), text)
                if now:
                    self.assertIn(f": {now[0]['phase']}, tile {now[0]['tile']}, ", text)
                    self.assertTrue(text.endswith(f"from {'change ' if 'change' in text else ''}{at[now[0]['begin']]:,} to {at[now[0]['end']]:,}"), text)
                else:
                    self.assertTrue(text.endswith("has not begun" if moment < at[lane[0]["begin"]] else "has ended"), text)
        self.assertEqual(said, {})

    def shares(self, events, names):
        shown = {(row, column): text for row, column, text in self.driver.execute_script(
            """return Array.from(document.querySelectorAll('.widget td[data-schedule]')).map(c =>
               [c.parentElement.dataset.phase, c.dataset.schedule, c.textContent])""")}
        for name in names:
            own = [e for e in events if e["schedule"] == name]
            total = sum(e["end"] - e["begin"] for e in own)
            for phase in NAMES:
                share = 100 * sum(e["end"] - e["begin"] for e in own if e["phase"] == phase) / total
                self.assertAlmostEqual(float(shown.pop((phase, name)).removesuffix(" %")), share, delta=0.0501)
            self.assertEqual(shown.pop(("tiles", name)), str(len({(e["block"], e["tile"]) for e in own})))
        self.assertEqual(shown, {})

    def window(self):
        """Where on the axis the bars that are drawn begin and end, those that stick out at the edges included."""
        bars = self.bars()
        begin, end = (int(self.one(".widget svg").get_attribute(f"data-{edge}")) for edge in ("from", "to"))
        self.assertEqual(bars, {bar for bar in self.everything if bar[3] < end and bar[4] > begin})
        return min(bar[3] for bar in bars), max(bar[4] for bar in bars), len(bars)

    def test_recorded_on_the_executor(self):
        recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
        events = events_of(recorded)
        self.open("09_hopper.html")
        self.select("Source").select_by_visible_text("CPU executor: order only")
        about = self.text(".widget .about")
        self.assertIn("nothing about time", about)
        self.assertIn(recorded["problem"], about)
        self.assertIn(recorded["clock"], about)
        self.look(events, order=True)
        # Its shares are those that the page shows as the program's output.
        output = (ROOT / "chapters/09_hopper/output.txt").read_text(encoding="utf-8").split("What the warpgroups do when")[1]
        row = next(line for line in output.splitlines() if line.startswith("waits for its turn"))
        cells = [cell.text for cell in self.all(".widget tr[data-phase='waits for its turn'] td.number")]
        self.assertEqual(" ".join(row.removeprefix("waits for its turn").split()), " ".join(cells))

    def test_keys_and_buttons_move_the_window(self):
        self.open("09_hopper.html")
        self.select("Source").select_by_visible_text("CPU executor: order only")
        self.press(Keys.HOME, "0")
        self.everything = self.bars()  # test_recorded_on_the_executor looks at them
        whole = self.window()
        self.press("+", "+")
        closer = self.window()
        self.assertEqual(closer[0], 0)
        self.assertLess(closer[1], whole[1])
        self.press(Keys.PAGE_DOWN)
        later = self.window()
        self.assertGreater(later[0], closer[0])
        self.assertGreater(later[1], closer[1])
        self.assertEqual(self.all(".widget line.moment"), [])  # it is not in the window
        self.press(Keys.PAGE_UP)
        self.assertEqual(self.window(), closer)
        self.press("-", "-")
        self.assertEqual(self.window(), whole)
        self.one(".widget .closer").send_keys(Keys.ENTER)
        half = self.window()
        self.assertLess(half[2], whole[2])
        self.one(".widget .right").send_keys(Keys.ENTER)
        self.assertGreater(self.window()[0], half[0])
        self.one(".widget .next").send_keys(Keys.ENTER)  # the window follows the moment
        self.assertEqual(len(self.all(".widget line.moment")), 2)
        self.assertRegex(self.text(".widget .place"), "^Change 1 of ")
        self.one(".widget .back").send_keys(Keys.ARROW_RIGHT)
        self.assertRegex(self.text(".widget .place"), "^Change 2 of ")
        self.one(".widget .all").send_keys(Keys.ENTER)
        self.assertEqual(self.window(), whole)
        self.press(Keys.END, "0", "=")  # no window reaches beyond the end
        self.assertEqual(self.one(".widget svg").get_attribute("data-to"), self.text(".widget .place").split()[-1].replace(",", ""))
        self.press("0")
        # A click chooses a moment.
        self.driver.execute_script("document.querySelectorAll('.widget .event')[9].dispatchEvent(new MouseEvent('click', {bubbles: true, "
                                   "clientX: document.querySelector('.widget svg').getBoundingClientRect().right - 60}))")
        self.assertNotRegex(self.text(".widget .place"), "^Change [0-2] of ")

    def test_on_made_up_results_of_a_card(self):
        """Cycles, lengths that mean something, and both sources to choose from."""
        document = made_up()
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            for name in ("card", "processor"):  # the second was run without a GPU: nothing was measured there
                results = folder / "docs/results" / name / "ch09_hopper.json"
                results.parent.mkdir(parents=True)
                clock = "cycles" if name == "card" else "turns of the executor's threads"
                results.write_text(json.dumps({**document, "timeline_clock": clock}), encoding="utf-8")
            (folder / "docs/site/data").mkdir(parents=True)
            shutil.copy(RECORDED, folder / "docs/site/data")
            self.assertTrue(write_data("timeline", folder, folder))
            self.open_alone("timeline", folder)
            self.assertEqual([option.text for option in self.select("Source").options], ["A card: measured", "CPU executor: order only"])
            about = self.text(".widget .about")
            for word in ("A card", "cycles", "abc", "2026-01-02", document["timeline_problem"]):
                self.assertIn(word, about)
            self.look(document["timeline"], order=False)
            self.press(Keys.HOME)
            self.assertIn(" cycles, from 0 to ", self.text(".widget .say li"))
            # To scale, and at the same scale in both: a bar is as wide as it is long.
            self.press("0")
            widths = self.driver.execute_script("""return Array.from(document.querySelectorAll('.widget .event')).map(e =>
                [e.dataset.end - e.dataset.begin, +e.querySelector('rect').getAttribute('width')]).filter(b => b[1] > 4)""")
            scale = max(width + 1 for _, width in widths) / max(length for length, _ in widths)
            for length, width in widths:
                self.assertAlmostEqual(width + 1, length * scale, delta=0.01)
            self.select("Source").select_by_visible_text("CPU executor: order only")
            self.assertIn("nothing about time", self.text(".widget .about"))
            self.assertEqual(len(self.select("Above").options), 4)
