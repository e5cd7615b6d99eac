"""The moving pictures of the site, each against the numbers that the programs wrote."""
import json
import pathlib
import re
import sys
import tempfile

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from site_browser import PHONE, ROOT, Browser

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "site")]
from widgets import RESULTS, write_data  # noqa: E402

DATA = ROOT / "docs" / "site" / "data"
# Runs that the explorer sets apart from the others of their machine.
RUNS = {"small_card": ", with the memory of a small card", "tensor_cores": ", chapter 8 beside FlashAttention-2"}


def recorded(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def number(text):
    """The first number in a text, with a true or a typographic minus."""
    return float(re.search(r"-?\d[\d,]*\.?\d*", text.replace("−", "-")).group().replace(",", ""))


def in_bytes(text):
    return number(text) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(text.split()[-1])


class Widgets(Browser):
    """Numbers on the page against the recorded ones, which CI compares with what the programs write."""

    def near(self, shown, exact, digits):
        self.assertAlmostEqual(shown, exact, delta=abs(exact) * 0.51 * 10 ** (1 - digits) + 1e-12)

    def test_memory(self):
        rows = [row for row in recorded("memory")["accounting"] if row["length"] >= 512]
        self.open("01_memory_accounting.html")
        slider = self.one(".widget input[type=range]")
        slider.send_keys(Keys.HOME)
        for i, row in enumerate(rows):
            if i:
                slider.send_keys(Keys.ARROW_RIGHT)
            self.assertEqual(number(self.text(".widget output")), row["length"])
            cell = lambda key, column: self.text(f".widget tr[data-row={key}] td:nth-child({column})")
            self.near(in_bytes(cell("qkvo", 2)), row["qkvo_bytes"], 3)
            self.near(in_bytes(cell("scores", 2)), 2 * row["score_bytes"], 3)
            self.near(in_bytes(cell("moved", 2)), row["naive_moved_bytes"], 3)
            self.near(in_bytes(cell("moved", 3)), row["flash_q_outside_moved_bytes"], 3)
            self.near(number(cell("ratio", 2)), row["score_bytes"] / row["qkvo_bytes"], 3)
            # To scale: a strip is 64 channels wide where the square is T long.
            widths = self.driver.execute_script(
                "return Array.from(document.querySelectorAll('.widget rect')).map(r => [r.getAttribute('class'), +r.getAttribute('width')])")
            side = next(width for name, width in widths if name == "scores")
            self.assertAlmostEqual(min(width for _, width in widths), max(1, side * 64 / row["length"]), delta=0.01)
        self.assertEqual(self.all(".widget rect.tile"), [])
        self.one(".widget button").send_keys(Keys.SPACE)
        self.assertEqual(len(self.all(".widget rect.tile")), 1)
        # At the greatest length, where strips are thin: the tile can be seen, and the names do not lie on each other.
        self.assertGreaterEqual(float(self.one(".widget rect.tile").get_attribute("width")), 4)
        baselines = self.driver.execute_script("""return Array.from(document.querySelectorAll('.widget svg text')).filter(t => 'KV'.includes(t.textContent))
            .map(t => [+t.getAttribute('y'), parseFloat(getComputedStyle(t).fontSize)])""")
        self.assertEqual(len(baselines), 2)
        self.assertGreaterEqual(abs(baselines[0][0] - baselines[1][0]), baselines[0][1])

    def test_stepper(self):
        trace = recorded("stepper")["trace"]
        self.open("02_online_softmax.html")
        following = self.one(".widget .next")
        cell = lambda key, column: self.text(f".widget tr[data-row={key}] td:nth-child({column})")
        for step in trace:
            following.click()
            self.assertEqual(number(cell("m", 5)), step["m_new"])
            self.near(number(cell("l", 5)), step["l_new"], 6)
            self.near(number(cell("l", 2)), step["l_old"], 6)
            self.near(number(cell("l", 3)), step["l_old"] * step["correction"], 6)
            self.near(number(cell("acc", 5)), step["acc_new"][0], 6)
            said = self.text(".widget .say")
            if step["m_old"] is not None:
                shown = float(re.search(r"(?:= |correction is )([\d.]+?)\.?(?: |$)", said).group(1))
                self.near(shown, step["correction"], 6)
        self.assertEqual(following.get_attribute("aria-disabled"), "true")
        last = trace[-1]
        self.near(number(self.text(".widget .say").rsplit("=", 1)[1]), last["acc_new"][0] / last["l_new"], 4)
        self.one(".widget .back").send_keys(Keys.ARROW_LEFT)
        self.near(number(cell("l", 5)), trace[-2]["l_new"], 6)
        self.one(".widget .back").send_keys(Keys.HOME)
        self.assertEqual(self.text(".widget .place"), f"1 of {len(trace) + 1}")

    def test_tile_scan(self):
        self.open("03_blocked_attention.html")
        for trace in recorded("tile-scan")["traces"]:
            self.one(f".widget input[value='{trace['schedule']}']").click()
            events = trace["steps"]
            tiles = [e for e in events if e.get("tile") in ("full", "diagonal")]
            skipped = sum(e.get("tile") == "skipped" for e in events)
            count = lambda kind: len(self.all(f".widget rect.{kind}"))
            self.assertEqual(count("skipped"), skipped)
            self.assertEqual(count("diagonal"), sum(e["tile"] == "diagonal" for e in tiles))
            read = lambda: in_bytes(self.text(".widget [data-total=read]"))
            written = lambda: in_bytes(self.text(".widget [data-total=written]"))
            for i in range(min(5, len(tiles))):
                self.assertIn(f"{i + 1} of {len(tiles)}", self.text(".widget .place"))
                title = self.driver.execute_script("return document.querySelector('.widget svg title').textContent")
                self.assertIn(f"query block {tiles[i]['q']} and key block {tiles[i]['kv']},", title)
                self.one(".widget .next").click()
            self.one(".widget .next").send_keys(Keys.END)
            self.assertEqual(self.text(".widget .place"), f"{len(tiles)} of {len(tiles)}")
            self.near(read(), sum(e["bytes"] for e in events if "load" in e), 3)
            self.near(written(), sum(e["bytes"] for e in events if "store" in e), 3)
            # A block of queries is chosen by a click on its row.
            self.all(".widget rect.tile.diagonal")[3].click()
            title = self.driver.execute_script("return document.querySelector('.widget svg title').textContent")
            self.assertIn("query block 3 ", title)
            self.one(".widget .back").send_keys(Keys.ARROW_DOWN)
            self.assertIn("query block 4 ", self.driver.execute_script("return document.querySelector('.widget svg title').textContent"))
            self.one(".widget .back").send_keys(Keys.ARROW_UP)
            self.assertIn("query block 3 ", self.driver.execute_script("return document.querySelector('.widget svg title').textContent"))

    def test_kernel(self):
        steps = json.loads((DATA / "kernel_steps.json").read_text(encoding="utf-8"))
        source = (ROOT / steps["file"]).read_text(encoding="utf-8")
        self.open("04_cuda_tiled.html")
        buttons = self.all(".widget [aria-label='Steps of the kernel'] button")
        self.assertEqual(len(buttons), len(steps["steps"]))
        lit_before = set()
        for button, step in zip(buttons, steps["steps"]):
            button.send_keys(Keys.ENTER)
            self.assertEqual(button.get_attribute("aria-pressed"), "true")
            lit = self.driver.execute_script(
                "return Array.from(document.querySelectorAll('.widget .line')).map((l, i) => [i, l.textContent, l.classList.contains('lit')]).filter(l => l[2])")
            self.assertGreater(len(lit), 2, step["title"])
            self.assertFalse(lit_before & {i for i, _, _ in lit}, f"{step['title']}: a line belongs to two steps")
            lit_before |= {i for i, _, _ in lit}
            for _, line, _ in lit:
                self.assertIn(line.strip(), source)
            if "region" in step["lines"]:  # what is lit is what stands between the marks
                marked = source.split(f"// [{step['lines']['region']}]\n")[1].rsplit("\n", 1)[0]
                self.assertEqual([line.strip() for _, line, _ in lit], [line.strip() for line in marked.strip("\n").split("\n")])
            for state, names in (("written", step["writes"]), ("read", [n for n in step["reads"] if n not in step["writes"]])):
                shown = {e.get_attribute("data-name") for e in self.all(f".widget rect[data-state={state}]")}
                self.assertEqual(shown, set(names))
        launch = next(entry for entry in recorded("kernel")["launch"] if entry["kernel"] == "tiled")
        about = self.text(".widget .about")
        self.assertIn(f"{launch['threads']} threads", about)
        self.near(in_bytes(re.search(r"takes ([\d.]+ \w+)", about).group(1)), launch["shared_bytes"], 3)
        traffic = next(entry for entry in recorded("kernel")["traffic"] if entry["kernel"] == "tiled")
        counted = re.search(r"counted ([\d.]+ \w+) read and ([\d.]+ \w+) written", about)
        self.near(in_bytes(counted.group(1)), traffic["read_bytes"], 3)
        self.near(in_bytes(counted.group(2)), traffic["written_bytes"], 3)

    def test_steps_keep_the_focus_at_both_ends(self):
        for page in ("02_online_softmax.html", "03_blocked_attention.html", "04_cuda_tiled.html"):
            self.open(page)
            following, back = self.one(".widget .next"), self.one(".widget .back")
            count = int(self.text(".widget .place").split()[-1])
            following.send_keys(Keys.END, Keys.ARROW_LEFT)
            for _ in range(3):
                self.driver.switch_to.active_element.send_keys(Keys.ENTER)
            self.assertEqual(self.driver.switch_to.active_element, following, page)
            self.assertEqual(self.text(".widget .place"), f"{count} of {count}", page)
            self.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
            self.assertEqual(self.text(".widget .place"), f"{count - 1} of {count}", page)
            back.send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ENTER, Keys.ENTER)
            self.assertEqual(self.driver.switch_to.active_element, back, page)
            self.assertEqual(self.text(".widget .place"), f"1 of {count}", page)
            self.assertEqual([b.get_attribute("aria-disabled") for b in (following, back)], ["false", "true"], page)

    def test_turning_a_phone_keeps_what_was_chosen(self):
        turned, place = (844, 390), lambda: self.text(".widget .place")

        def turn(size):
            box = self.one(".widget .live")
            self.resize(size)
            self.wait(lambda: self.one(".widget .live") != box, "a new box")

        for page in ("02_online_softmax.html", "03_blocked_attention.html", "04_cuda_tiled.html"):
            self.resize(PHONE)
            self.open(page)
            if page.startswith("03"):
                self.one(".widget input[type=radio]:not(:checked)").click()
            self.one(".widget .next").send_keys(Keys.ENTER, Keys.ARROW_RIGHT)
            chosen = place()
            self.assertTrue(chosen.startswith("3 of"), chosen)
            turn(turned)
            self.assertEqual(place(), chosen, page)
            self.assertEqual(self.driver.switch_to.active_element.text, "Next", page)
            self.one(".widget .next").send_keys(Keys.HOME)
            # Nothing plays on in a box that is gone.
            self.driver.execute_script("""window.playing = 0; const [begin, end] = [setInterval, clearInterval];
                setInterval = (...all) => { playing += 1; return begin(...all); }; clearInterval = (timer) => { playing -= timer !== null; end(timer); }""")
            self.one(".widget .play").click()
            self.assertEqual(self.driver.execute_script("return playing"), 1, page)
            turn(PHONE)
            self.assertEqual(self.driver.execute_script("return playing"), 0, page)
            self.assertEqual((self.text(".widget .play"), len(self.all(".widget .live"))), ("Play", 1), page)
        self.open("01_memory_accounting.html")
        self.one(".widget input[type=range]").send_keys(Keys.END)
        self.one(".widget button").click()
        length = self.text(".widget output")
        turn(turned)
        self.assertEqual(self.text(".widget output"), length)
        self.assertEqual(self.one(".widget button").get_attribute("aria-pressed"), "true")
        self.resize(PHONE)
        self.open("09_hopper.html")
        self.driver.execute_script("document.querySelector('.widget svg').focus()")
        self.driver.switch_to.active_element.send_keys("+", Keys.PAGE_DOWN, Keys.ARROW_RIGHT, "-")
        seen = lambda: (place(), *(self.one(".widget svg").get_attribute(f"data-{edge}") for edge in ("from", "to")),
                        *(Select(select).first_selected_option.text for select in self.all(".widget select")))
        before = seen()
        turn(turned)
        self.assertEqual(seen(), before)

    def test_words_stand_out_from_their_ground(self):
        """At least 4.5 to 1, as WCAG 2.1 asks in 1.4.3: the words beside the tiles, the lines of the kernel that are lit, the names of the results."""
        faint = """const parts = (c) => c.match(/[\\d.]+/g).map(Number);
            const light = (c) => parts(c).slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
                .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
            const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if ((parts(c)[3] ?? 1) === 1) return c; } };
            const words = Array.from(document.querySelectorAll(arguments[0])).filter(e => Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim()));
            return [words.length, words.map(e => { const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => x - y);
                return [e.textContent, (b + .05) / (a + .05)]; }).filter(w => w[1] < 4.5)]"""
        for page, places in (("03_blocked_attention.html", ".widget .side *"), ("04_cuda_tiled.html", ".widget .lit, .widget .lit *"),
                             ("06_benchmark.html", ".widget .names label")):
            self.open(page)
            for theme in range(2):
                for _ in range(int(self.text(".widget .place").split()[-1]) if self.all(".widget .place") else 1):
                    count, weak = self.driver.execute_script(faint, places)
                    self.assertTrue(count or page.startswith("06") and not self.all(".widget .names"), page)
                    self.assertEqual(weak, [], (page, theme))
                    for button in self.all(".widget .next"):
                        button.send_keys(Keys.ENTER)
                for button in self.all(".widget .start"):
                    button.send_keys(Keys.ENTER)
                self.one("#theme-button").click()

    def explore(self, folder):
        """Compares every number that the explorer on the open page shows with the results in `folder`/docs/results."""
        rows = {}
        for path in sorted((folder / "docs/results").glob("*/*.json")):
            document = json.loads(path.read_text(encoding="utf-8"))
            run = next((text for name, text in RUNS.items() if name in path.name), "")
            for row in document["rows"] if path.name in RESULTS else []:
                if row.get("set") and row.get("cache"):
                    machine = document["context"].get("gpu") if row["device"] == "cuda" else document["context"]["machine"]
                    rows[(machine + run, row["set"], row["cache"], row["implementation"], row["len_q"])] = row
        select = lambda label: Select(self.one(f".widget select[aria-label='{label}']"))
        values = lambda label: [option.get_attribute("value") for option in select(label).options]
        units = {"s": 1e3, "ms": 1, "µs": 1e-3, "ns": 1e-6}
        seen = set()
        for machine in values("Machine"):
            select("Machine").select_by_value(machine)
            name = select("Machine").first_selected_option.text
            for shapes in values("Shapes"):
                select("Shapes").select_by_value(shapes)
                for cache in values("Cache"):
                    select("Cache").select_by_value(cache)
                    for quantity in ("rate", "memory", "time"):
                        select("Show").select_by_value(quantity)
                        shown = self.driver.execute_script("""return Array.from(document.querySelectorAll('.widget tbody td[data-t]'))
                            .map(c => [c.parentElement.dataset.name, +c.dataset.t, c.textContent])""")
                        for implementation, length, text in shown:
                            key = (name, shapes, cache, implementation, length)
                            row = rows.get(key)
                            if row is None:
                                self.assertEqual(text, "", key)
                                continue
                            seen.add(key)
                            if row["status"] != "ok":
                                self.assertEqual(text, row["status"].replace("_", " "), key)
                            elif quantity == "time":
                                self.near(number(text) * units[text.split()[-1]], row["median_ms"], 3)
                            elif quantity == "rate":
                                self.near(number(text), row["tflops"], 3)
                            elif row.get("peak_bytes") is not None:
                                self.near(in_bytes(text), row["peak_bytes"], 3)
                        outside = self.driver.execute_script("""const box = document.querySelector('.widget svg').getBoundingClientRect();
                            return Array.from(document.querySelectorAll('.widget svg text')).filter(t =>
                            t.getBoundingClientRect().left < box.left - .5).map(t => t.textContent)""")
                        self.assertEqual(outside, [], (name, shapes, quantity))
                    missing = len(self.all(".widget svg .missing"))
                    self.assertEqual(missing, sum(bool(re.search("out of memory|unsupported", text)) for _, _, text in shown))
        self.assertEqual(seen, set(rows))
        boxes = self.all(".widget .names input")
        boxes[0].send_keys(Keys.SPACE)
        self.assertEqual(len(self.all(".widget tbody tr")), len(boxes) - 1)

    def test_explorer(self):
        if not (self.site / "site/data/explorer.js").exists():
            self.skipTest("no results of chapter 6 are recorded yet")
        self.open("06_benchmark.html")
        self.explore(ROOT)

    def test_explorer_on_made_up_results(self):
        """Whatever is recorded: both devices, peers, a small card, and rows without a time."""
        row = {"device": "cuda", "set": "causal", "cache": "cold", "batch": 4, "heads_q": 12, "heads_kv": 12, "head_dim": 64,
               "dtype": "bf16", "causal": True, "status": "ok", "bound_share": 0.5}
        timed = lambda name, length, ms, **more: {**row, "implementation": name, "len_q": length, "len_kv": length, "median_ms": ms,
                                                  "tflops": 12.3 / ms, "peak_bytes": length * 1000, **more}
        lacking = lambda name, length, status: {**row, "implementation": name, "len_q": length, "len_kv": length, "status": status,
                                                "median_ms": None, "tflops": None, "peak_bytes": None}
        gpu = {"program": "ch06_benchmark", "machine": "A processor", "gpu": "A card", "seed": 1, "date": "2026-01-01", "commit": "0"}
        files = {
            "benchmark.json": (gpu, [timed("naive", 1024, 0.25), timed("fused", 1024, 0.0123), timed("fused", 4096, 1.5),
                                     lacking("naive", 4096, "out_of_memory"), lacking("odd", 1024, "unsupported"),
                                     timed("fused", 512, 0.01, set="short", cache="warm", bound_share=None)]),
            "small_card.json": (gpu, [timed("fused", 1024, 0.0124), lacking("naive", 1024, "out_of_memory")]),
            "peers.json": ({**gpu, "program": "scripts/peers.py"}, [timed("peer", 1024, 0.011), timed("peer", 4096, 1.25)]),
            "tensor_cores.json": (gpu, [timed("last", 1024, 0.0111)]),
            "tensor_cores_peers.json": ({**gpu, "program": "scripts/peers.py"}, [timed("peer", 1024, 0.0113)]),
            "benchmark_cpu.json": ({**gpu, "gpu": None}, [timed("naive", 1024, 2345.6, device="cpu", cache="warm")]),
        }
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            results = folder / "docs/results/card"
            results.mkdir(parents=True)
            for name, (context, rows) in files.items():
                (results / name).write_text(json.dumps({"context": context, "rows": rows, "checks": []}), encoding="utf-8")
            self.assertTrue(write_data("explorer", folder, folder))
            self.open_alone("explorer", folder)
            self.explore(folder)

    def test_widgets_fit_a_phone_and_the_dark(self):
        self.resize(PHONE)
        for page in self.course_pages():
            if "<figure class=\"widget\"" not in (self.site / page).read_text(encoding="utf-8"):
                continue
            self.open(page)
            if "dark-mode" not in self.one("html").get_attribute("class"):
                self.one("#theme-button").click()
            for figure in self.all("figure.widget.ready"):
                self.driver.execute_script("arguments[0].scrollIntoView(); scrollBy(0, -60)", figure)
                small = self.driver.execute_script("""return Array.from(arguments[0].querySelectorAll('svg text')).filter(t => t.textContent.trim())
                    .map(t => [t.textContent, parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a]).filter(t => t[1] < 10)""", figure)
                self.assertEqual(small, [], page)
                outside = self.driver.execute_script("""const box = arguments[0].querySelector('svg').getBoundingClientRect();
                    return Array.from(arguments[0].querySelectorAll('svg text')).filter(t => { const b = t.getBoundingClientRect();
                    return b.width && (b.left < box.left - 1 || b.right > box.right + 1); }).map(t => t.textContent)""", figure)
                self.assertEqual(outside, [], page)
                self.shot("widget_" + page.removesuffix(".html"))
        self.one("#theme-button").click()
