#!/usr/bin/env python3
"""The course's site in a real browser: pages, search, theme, and each moving picture against the program's numbers.

Needs Debian's chromium, chromium-driver and python3-selenium. The site is opened from disk, as readers open it.

usage: site_browser_test.py SITE_FOLDER [--screenshots FOLDER] [TEST...]
"""
import argparse
import pathlib
import re
import sys
import unittest

from selenium.webdriver.common.keys import Keys

from site_browser import PHONE, ROOT, Browser
from site_timeline import Timeline  # noqa: F401  (run with the others)
from site_widgets import Widgets  # noqa: F401


class Frame(Browser):
    def test_next_leads_through_all_chapters(self):
        self.open("index.html")
        titles = []
        while True:
            titles.append(self.text("h1"))
            self.assertEqual(len(self.all("#menu [aria-current]")), 1)
            following = self.all("a[rel=next]")
            if not following:
                break
            self.assertLess(len(titles), 50)
            following[0].click()
        chapters = [int(title.split(".")[0]) for title in titles if re.match(r"\d+\. ", title)]
        expected = [int(path.parent.name[:2]) for path in sorted(ROOT.glob("chapters/[0-9][0-9]_*/README.md"))]
        self.assertEqual(chapters, expected)
        self.assertIn("Notation and glossary", titles)
        for _ in titles[1:]:
            self.one("a[rel=prev]").click()
        self.assertEqual(self.text("h1"), titles[0])

    def test_search_finds_online(self):
        self.open("index.html")
        field = self.one("#search-field")
        self.driver.switch_to.active_element.send_keys("/")
        self.assertEqual(self.driver.switch_to.active_element, field)
        field.send_keys("online")
        self.wait(lambda: self.all("#search-results a"), "results")
        found = [link.get_attribute("href") for link in self.all("#search-results a")]
        self.assertTrue(any("02_online_softmax.html" in link for link in found), found)
        field.send_keys(Keys.ARROW_DOWN)
        self.driver.switch_to.active_element.send_keys(Keys.ENTER)
        self.wait(lambda: "online" in self.driver.page_source.lower() and "index.html" not in self.driver.current_url, "a page")
        self.open("search.html?q=AttentionProblem")
        self.wait(lambda: self.all("#search-page li"), "results")
        self.assertTrue(any("reference/" in a.get_attribute("href") for a in self.all("#search-page a")))
        # A word that begins so comes before one that only holds it: TMA, and sofTMAx.
        self.open("search.html?q=tma")
        self.wait(lambda: self.all("#search-page li"), "results")
        self.assertRegex(self.text("#search-page li b"), r"\bTMA\b")
        self.open("search.html?q=LSE")
        self.wait(lambda: self.all("#search-page li"), "results")
        self.assertNotIn("\\", self.text("#search-page"))
        self.open("search.html")
        self.assertIn("Type what you look for", self.text("#search-page"))
        self.open("search.html?q=nosuchwordanywhere")
        self.wait(lambda: "Nothing found" in self.text("#search-page"), "a word of regret")

    def test_search_results_stay_on_the_screen(self):
        self.open("index.html")
        for width in (320, 390, 600, 820, 821, 1300):
            self.resize((width, 800))
            self.one("#search-field").clear()
            self.one("#search-field").send_keys("softmax")
            self.wait(lambda: self.all("#search-results a"), "results")
            left, right, inside = self.driver.execute_script("""const box = document.getElementById('search-results').getBoundingClientRect();
                return [box.left, box.right, innerWidth]""")
            self.assertGreaterEqual(left, 0, width)
            self.assertLessEqual(right, inside, width)
            self.assertGreater(right - left, 280, width)

    def test_a_fragment_that_is_no_escape_stops_nothing(self):
        self.open("02_online_softmax.html?")
        self.driver.get((self.site / "02_online_softmax.html").as_uri() + "#%")
        self.driver.refresh()
        self.one("#search-field").send_keys("softmax")
        self.wait(lambda: self.all("#search-results a"), "results")

    def test_dark_mode_persists(self):
        dark = lambda: "dark-mode" in self.one("html").get_attribute("class")

        # The choice reaches other pages through other processes of the browser, on a busy machine after seconds: a page
        # is loaded until it shows the choice. To load a page changes no choice, so one that is lost stays lost.
        def shows(theme, load):
            def loaded():
                load()
                return dark() == theme
            self.wait(loaded, f"{self.driver.current_url} {'dark' if theme else 'light'}")

        self.open("index.html")
        if dark():
            self.one("#theme-button").click()
        light_paper = self.one("body").value_of_css_property("background-color")
        self.one("#theme-button").click()
        self.assertTrue(dark())
        self.assertNotEqual(self.one("body").value_of_css_property("background-color"), light_paper)
        self.one("a[rel=next]").click()
        self.wait(lambda: "index.html" not in self.driver.current_url, "the next page")
        shows(True, self.driver.refresh)
        shows(True, lambda: self.open("reference/index.html"))
        self.one("#theme-button").click()
        self.assertFalse(dark())
        shows(False, lambda: self.open("semantics.html"))

    def test_no_page_scrolls_sideways_on_a_phone(self):
        self.resize(PHONE)
        wide = []
        reference = ["reference/index.html", "reference/group__common.html", "reference/group__ch03.html",
                     "reference/structfa_1_1AttentionProblem.html", "source/common/attention.h.html"]
        for page in self.course_pages() + reference:
            self.open(page)
            self.driver.execute_script("for (const fold of document.querySelectorAll('details')) fold.open = true")
            width = self.driver.execute_script("return document.documentElement.scrollWidth")
            if width > PHONE[0]:
                wide.append(f"{page}: {width}")
            self.shot("phone_" + page.replace("/", "_").removesuffix(".html"))
        self.assertEqual(wide, [])

    def test_the_menu_opens_on_a_phone(self):
        self.resize(PHONE)
        self.open("index.html")
        self.assertFalse(self.one("#menu").is_displayed())
        self.one("#menu-button").send_keys(Keys.ENTER)
        self.assertTrue(self.one("#menu").is_displayed())
        self.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        self.assertFalse(self.one("#menu").is_displayed())
        self.one("#menu-button").click()
        self.one("#menu a[href='02_online_softmax.html']").click()
        self.assertEqual(self.text("h1"), "2. Online softmax")

    def test_mathematics_is_set_and_pictures_are_there(self):
        for page in self.course_pages():
            self.open(page)
            raw = self.driver.execute_script(
                "return Array.from(document.querySelectorAll('.math')).filter(e => !e.querySelector('.katex-html')).length")
            self.assertEqual(raw, 0, page)
            broken = self.driver.execute_script(
                "return Array.from(document.images).filter(i => i.getClientRects().length && !(i.complete && i.naturalWidth)).map(i => i.src)")
            self.assertEqual(broken, [], page)
            self.shot("desktop_" + page.removesuffix(".html"))

    def test_pictures_hold_their_text(self):
        """No text is cut off at the edge of its picture, and on a phone no picture shrinks until its text cannot be read."""
        pictures = sorted((self.site / "files/docs/img").glob("*.svg"))
        self.assertGreater(len(pictures), 7)
        for picture in pictures:
            self.driver.get(picture.as_uri())
            outside = self.driver.execute_script("""const all = document.documentElement.getBoundingClientRect();
                return Array.from(document.querySelectorAll('text')).filter(t => { const b = t.getBoundingClientRect();
                return b.width && (b.left < all.left - 1 || b.right > all.right + 1); }).map(t => t.textContent)""")
            self.assertEqual(outside, [], picture.name)
        self.resize(PHONE)
        for page in self.course_pages():
            self.open(page)
            shrunk = self.driver.execute_script("""return Array.from(document.querySelectorAll('main .picture'))
                .filter(p => p.getClientRects().length).map(p => [p.firstChild.src, p.firstChild.clientWidth,
                parseFloat(p.style.getPropertyValue('--drawn'))]).filter(p => p[1] < 0.79 * p[2])""")
            self.assertEqual(shrunk, [], page)

    def copied(self, page):
        """What the first copy button of a page copies."""
        self.open(page)
        button = self.one("div.code .copy")
        self.driver.execute_script("""window.copied = null;
            navigator.clipboard && (navigator.clipboard.writeText = async (text) => { window.copied = text; });
            document.execCommand = () => { window.copied = document.activeElement.value; return true; };""")
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.send_keys(Keys.ENTER)
        self.wait(lambda: button.text == "Copied", "Copied")
        return self.driver.execute_script("return window.copied")

    def test_copy_buttons(self):
        text = self.copied("02_online_softmax.html")
        self.assertEqual(text, self.driver.execute_script("return document.querySelector('div.code pre').textContent"))
        self.assertIn("float update(SoftmaxState& state", text)
        header = (ROOT / "common/attention.h").read_text(encoding="utf-8")
        self.assertEqual(self.copied("source/common/attention.h.html"), header.rstrip("\n"))

    def test_print_shows_the_still_pictures(self):
        self.open("02_online_softmax.html")
        shown = lambda selector: self.one(selector).is_displayed()
        self.assertTrue(shown(".widget .live"))
        self.assertFalse(shown(".widget .fallback"))
        if "dark-mode" not in self.one("html").get_attribute("class"):
            self.one("#theme-button").click()
        scheme = lambda: self.one("html").value_of_css_property("color-scheme")
        self.assertEqual(scheme(), "dark")
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        try:
            self.assertFalse(shown(".widget .live"))
            self.assertTrue(shown(".widget .fallback"))
            self.assertEqual(scheme(), "light")  # the pictures' colours follow it: on paper, light ones could not be read
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
            self.one("#theme-button").click()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("site", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    arguments, rest = parser.parse_known_args()
    Browser.site, Browser.shots = arguments.site.resolve(), arguments.screenshots
    if not (Browser.site / "index.html").is_file():
        print(f"{Browser.site} holds no site; cmake --build build --target docs writes it", file=sys.stderr)
        return 1
    if Browser.shots:
        Browser.shots.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *rest])
    return 0


if __name__ == "__main__":
    sys.exit(main())
