"""The site: its pages are in the navigation, read as code hosts read them, and load nothing from elsewhere.

The whole site, built without a warning, is marked long: by default pages are rendered one by one as it renders them.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown import Markdown
from mkdocs.config import load_config

from docs.from_code import commands, results
from docs.from_code.hooks import EMPTY_HEAD, ListsAsOnCodeHosts, made
from docs.from_code.repository import written
from tests.cases.browser import BROWSER, browser

ROOT = Path(__file__).resolve().parents[2]
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
OUTSIDE = re.compile(r"^(?:https?:)?//")
IN_STYLES = re.compile(r"""(?:@import\s+|url\(\s*)["']?(?:https?:)?//""")
HARMLESS = {"canonical"}  # a link that says where a page stands and loads nothing


class Loads(HTMLParser):
    """The addresses outside of the site that a page loads when it is opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element loads."""
        values = dict(attrs)
        address = values.get(LOADS.get(tag, ""), "") or ""
        if OUTSIDE.match(address) and values.get("rel") not in HARMLESS:
            self.found.append(address)
        if IN_STYLES.search(values.get("style") or ""):
            self.found.append(str(values["style"]))

    def handle_data(self, data: str) -> None:
        """Note what a style sheet in the page loads."""
        if self.cdata_elem == "style" and IN_STYLES.search(data):
            self.found.append(data)


@functools.cache
def rendered() -> dict[str, str]:
    """Return the HTML of every page that is written and of some that are made: place in docs → HTML."""
    config = load_config(str(ROOT / "mkdocs.yml"))
    extensions = [*config.markdown_extensions, ListsAsOnCodeHosts()]
    reader = Markdown(extensions=extensions, extension_configs=config.mdx_configs)
    pages = {**written(), **commands.pages(), **results.pages()}
    return {place: reader.reset().convert(text) for place, text in pages.items()}


def in_paragraphs(html: str) -> str:
    """Return a list or a table that was left in a paragraph, "" where none was.

    Such are those without an empty line before them, or with narrow indents.
    """
    left = re.search(r"<p>(?:(?!</p>).)*?\n\s*(?:[-*] |\|[ :|-]*---)", html, re.DOTALL)
    return left[0][-80:] if left else ""


def test_pages_one_by_one_are_read_as_code_hosts_read_them_and_load_nothing_from_elsewhere() -> None:
    assert {place: mark for place, html in rendered().items() if (mark := in_paragraphs(html))} == {}
    assert {place: found for place, html in rendered().items() if (found := Loads(html).found)} == {}
    assert "<th" in rendered()["reference/fields/apollo.md"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.long
@pytest.mark.slow
def test_every_page_is_in_the_site(site: Path) -> None:
    written = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    for place in (*made(), *written):
        page = site / re.sub(r"README\.md$", "index.md", place)
        assert page.with_suffix(".html").is_file(), place
    assert not list(site.rglob("*.py"))


@pytest.mark.long
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = {
        str(page.relative_to(site)): found for page in site.rglob("*.html") if (found := Loads(page.read_text()).found)
    }
    assert loads == {}
    assert [str(sheet) for sheet in site.rglob("*.css") if IN_STYLES.search(sheet.read_text())] == []


@pytest.mark.long
def test_no_table_has_an_empty_head(site: Path) -> None:
    assert "<th" in (site / "reference" / "attacks" / "index.html").read_text()
    assert [str(page) for page in site.rglob("*.html") if EMPTY_HEAD.search(page.read_text())] == []


@pytest.mark.long
@BROWSER
@pytest.mark.parametrize("width", [1280, 400])
def test_a_site_opened_as_a_file_can_be_searched(site: Path, tmp_path: Path, width: int) -> None:
    with browser(tmp_path) as window:
        window.show(site / "index.html", width, 800)
        shown, hits = window.wait("""
          const [done] = arguments, field = document.querySelector(".md-search__input"), end = Date.now() + 60000;
          document.querySelector("label.md-header__button[for=__search]").click();
          field.focus();
          field.value = "optuna";
          field.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
          const look = () => {
            const hits = [...document.querySelectorAll(".md-search-result__link")].map(link => link.href);
            if (hits.length || Date.now() > end) done([field.getBoundingClientRect().width, hits]);
            else setTimeout(look, 100);
          };
          look();
        """)
        console, asked = window.logged()
    assert shown > 100 and (site / "how-to" / "searching.html").as_uri() in hits
    assert console == [] and not [address for address in asked if address.startswith(("http:", "https:"))]


@pytest.mark.long
def test_pages_are_read_as_code_hosts_read_them(site: Path) -> None:
    pages = {
        str(page.relative_to(site)): mark for page in site.rglob("*.html") if (mark := in_paragraphs(page.read_text()))
    }
    assert pages == {}


def test_a_table_in_a_paragraph_is_noticed() -> None:
    for text in ("Words:\n| a |\n| --- |\n| b |", "Words\n- of a list"):
        config = load_config(str(ROOT / "mkdocs.yml"))
        assert in_paragraphs(Markdown(extensions=config.markdown_extensions).convert(text)), text
    assert not in_paragraphs("<p>Words:</p>\n<ul>\n<li>of a list</li>\n</ul>")


def test_loads_from_elsewhere_are_noticed() -> None:
    page = (
        '<link rel="canonical" href="https://a"><link rel="stylesheet" href="//b"><img src="c.png"><a href="https://d">'
        '<script src="https://e"></script><style>@import "https://f";</style><p style="background: url(https://g)">'
    )
    assert [address[-12:] for address in Loads(page).found] == [
        "//b",
        "https://e",
        '"https://f";',
        "url(https://g)"[-12:],
    ]
    assert IN_STYLES.search("src: url('//h')") and not IN_STYLES.search("src: url(h.woff2)")
