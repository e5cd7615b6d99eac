"""A browser for the tests of the site: Debian's Chromium, without a window, on pages opened from disk."""
import pathlib
import tempfile
import unittest

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
DESKTOP, PHONE = (1300, 900), (390, 844)


class Browser(unittest.TestCase):
    site = None   # the folder that is looked at, set before the tests run
    shots = None  # where screenshots go, or nothing

    @classmethod
    def setUpClass(cls):
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        cls.profile = tempfile.TemporaryDirectory()
        for flag in [*FLAGS, f"--user-data-dir={cls.profile.name}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.driver.set_page_load_timeout(60)

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        cls.profile.cleanup()

    def setUp(self):
        self.resize(DESKTOP)

    def tearDown(self):
        # Every test, whatever else it looks at: nothing on the console.
        messages = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(messages, [])

    def resize(self, size):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE})

    def open(self, page):
        name, question, query = page.partition("?")
        self.driver.get((self.site / name).as_uri() + question + query)

    def open_alone(self, widget, folder):
        """A page in `folder` with nothing on it but a moving picture, whose data stand below folder/site/data."""
        scripts = [(self.site / "site/widgets" / f"{name}.js").as_uri() for name in ("frame", widget)]
        page = folder / "page.html"
        page.write_text(f'<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><figure class="widget" data-widget="{widget}"></figure>'
                        f'<script src="site/data/{widget}.js"></script>' + "".join(f'<script src="{s}"></script>' for s in scripts),
                        encoding="utf-8")
        self.driver.get(page.as_uri())

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.one(selector).text

    def wait(self, condition, what):
        # A page may change between two looks at it: then look again.
        passing = [NoSuchElementException, StaleElementReferenceException]
        WebDriverWait(self.driver, 60, ignored_exceptions=passing).until(lambda _: condition(), what)

    def shot(self, name):
        if self.shots:
            self.driver.save_screenshot(str(self.shots / f"{name}.png"))

    def course_pages(self):
        return [path.name for path in sorted(self.site.glob("*.html"))]
