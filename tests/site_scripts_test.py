#!/usr/bin/env python3
"""Tests of what the site is built with, as far as Python's standard library goes; site_browser_test.py does the rest."""
import pathlib
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"
sys.path[:0] = [str(SCRIPTS), str(SCRIPTS / "site")]
import contents  # noqa: E402
import group_filter  # noqa: E402
import links  # noqa: E402
import search_index  # noqa: E402
import widget_data  # noqa: E402


class Links(unittest.TestCase):
    def faults(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (pathlib.Path(folder) / name.replace("_", ".")).write_text(text, encoding="utf-8")
            return links.faults_of(folder)

    def test_what_leads_somewhere_is_no_fault(self):
        self.assertEqual(self.faults(a_html='<a href="b.html#x">b</a><a href="https://example.org">out</a><a href="#here">'
                                            '<h2 id="here">', b_html='<p id="x">'), [])

    def test_dead_places(self):
        for page in ['<a href="c.html">', '<a href="b.html#y">', '<a href="#nowhere">', '<img src="no.svg">',
                     '<script src="no.js"></script>', '<a href="../a.html">']:
            self.assertEqual(len(self.faults(a_html=page, b_html='<p id="x">')), 1, page)

    def test_nothing_comes_from_the_network(self):
        for page in ['<script src="https://example.org/x.js"></script>', '<link href="//example.org/x.css">',
                     '<img src="http://example.org/x.png">', '<img srcset="https://example.org/x.png 2x">',
                     '<video poster="https://example.org/x.png">', '<audio src="https://example.org/x.ogg">',
                     '<p style="background: url(https://example.org/x.png)">']:
            self.assertEqual(len(self.faults(a_html=page)), 1, page)
        self.assertEqual(len(self.faults(a_css='@import "https://example.org/x.css";')), 1)
        self.assertEqual(len(self.faults(a_css="x { background: url(no.png) }")), 1)


class Data(unittest.TestCase):
    def test_roundings_are_no_difference(self):
        self.assertEqual(widget_data.differences({"l": [1.0, None, "Q"]}, {"l": [1.000001, None, "Q"]}), [])

    def test_everything_else_is(self):
        for old, new in [(1.0, 1.001), (1.0, None), (None, 0.0), ("full", "diagonal"), ([1], [1, 2]), ({"a": 1}, {"b": 1}),
                         (1, 2), (True, False), (1.0, float("nan")), (0.0, 1e-6)]:
            self.assertEqual(len(widget_data.differences({"x": old}, {"x": new})), 1, (old, new))


class Groups(unittest.TestCase):
    def test_the_group_of_a_file(self):
        for path, group in [("chapters/02_online_softmax/trace.h", "ch02"), ("/x/chapters/chapters/03_b/t.h", "ch03"),
                            ("chapters/implementations.h", "chapters"), ("common/cuda/check.h", "common")]:
            self.assertEqual(group_filter.group_of(path), group)

    def test_no_line_moves_and_namespaces_are_marked(self):
        text = "#pragma once\nnamespace fa {\nint f();\n}  // namespace fa\n"
        marked = group_filter.grouped(text, "ch02")
        self.assertEqual([line.split("/**")[0].strip() for line in marked.splitlines()[1:3]], ["namespace fa {", "int f();"])
        self.assertEqual(marked.count("@{"), 2)
        self.assertEqual(marked.count("@}"), 2)
        self.assertEqual(marked.count("\n"), text.count("\n") + 1)


class Search(unittest.TestCase):
    def test_a_page_is_cut_at_its_headings(self):
        page = contents.Page(pathlib.Path("x.md"), "x.html", "The page")
        entries = search_index.entries_of(page, '<h1>The page</h1><p>first</p><h2 id="two">Two<a class="anchor" href="#two">#</a></h2>'
                                                "<p>second <b>part</b></p><details><summary>Why?</summary>because</details>")
        self.assertEqual([(e["title"], e["url"]) for e in entries],
                         [("The page", "x.html"), ("Two", "x.html#two"), ("Why?", "x.html#two")])
        self.assertIn("second part", entries[1]["text"])
        self.assertNotIn("#", entries[1]["text"])
        self.assertEqual(entries[2]["text"], "because")

    def test_formulas_are_words(self):
        page = next(page for page in contents.contents()[0] if page.chapter)
        body = r'<h1>x</h1><p>the <span class="math">c \cdot \text{LSE}_{i}</span> of <code>"\n"</code></p>'
        text = search_index.entries_of(page, body)[0]["text"]
        self.assertIn("c cdot LSE_i of", text.replace("  ", " "))
        self.assertIn(r'"\n"', text)


class Contents(unittest.TestCase):
    def test_the_order_of_the_course(self):
        order, rest = contents.contents()
        self.assertEqual(order[0].address, "index.html")
        chapters = [page.chapter for page in order if page.chapter]
        self.assertEqual(chapters, sorted(chapters))
        self.assertGreaterEqual(len(chapters), 6)
        self.assertFalse({page.source for page in order} & {page.source for page in rest})


if __name__ == "__main__":
    unittest.main()
