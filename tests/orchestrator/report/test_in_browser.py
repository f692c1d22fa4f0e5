"""Pages in a headless Chromium: wide and narrow, light, dark and print; and what their script does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.kinds import kind_named, load_plan
from orchestrator.report.result import read_result
from tests.cases.apollo_page import whole_page
from tests.cases.apollo_result import write_run
from tests.cases.browser import BROWSER, Browser, browser
from tests.cases.kept import finished
from tests.cases.page_checks import OTHERS, WINDOWS, fits_asks_nobody_and_is_accessible, the_first_screen_is_the_verdict
from tests.cases.runs import audited
from tests.orchestrator.gnq.drawn_result import write_gnq_run
from tests.orchestrator.tmia.drawn_result import write_tmia_run

pytestmark = [pytest.mark.slow, BROWSER]

MODES = {"I": {"audit.mode": "I"}, "II": {"audit.mode": "II", "signal": 0.0}}
NOISE = {f"σ={value}": {"recipe.noise_multiplier": value} for value in (0.1, 0.2, 0.4, 0.8, 1.6)}


def smoke(out: Path) -> None:
    """Carry out the smallest membership audit."""
    audited(load_plan("mia-smoke", ["compute.workers=0", f"compute.store={out / 'store'}"]), out)


RUNS: dict[str, Callable[[Path], Any]] = {
    "apollo-sweep": lambda out: write_run(out, sweep=True, targets=3, points=70),
    "tmia": lambda out: write_tmia_run(out, MODES),
    "gnq": lambda out: write_gnq_run(out, inverted=True),
    "gnq-sweep": lambda out: write_gnq_run(out, NOISE, arms=("none",)),
    "mia-smoke": smoke,
}


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(
    scope="module",
    params=["mia", *(pytest.param(name, marks=pytest.mark.long) for name in ("apollo", *RUNS))],
)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a small run, on which axe is soon done, and of larger ones, which have all that pages can have."""
    if request.param == "mia":
        return finished("mia") / "report.html"
    if request.param == "apollo":
        return whole_page() / "report.html"
    out = tmp_path_factory.mktemp(request.param)
    RUNS[request.param](out)
    return kind_named(read_result(out)["kind"]).open_page().write(out, None)


@pytest.mark.parametrize(
    ("width", "scheme", "media"), [*WINDOWS, *(pytest.param(*each, marks=pytest.mark.long) for each in OTHERS)]
)
def test_a_page_fits_its_window_asks_nobody_and_is_accessible(
    window: Browser, page: Path, width: int, scheme: str, media: str
) -> None:
    fits_asks_nobody_and_is_accessible(window, page, width, scheme, media)


def test_the_first_screen_answers_whether_it_leaks_how_sure_that_is_and_what_to_do(window: Browser, page: Path) -> None:
    the_first_screen_is_the_verdict(window, page)


def test_nothing_that_is_gone_to_lies_under_the_contents(window: Browser, page: Path) -> None:
    window.show(page, 1280, 800)
    bars = window.run("""
      const bar = () => document.querySelector("nav").getBoundingClientRect().bottom;
      return [...document.querySelectorAll("nav a[href^='#'], #answer a[href^='#']")].map(each => {
        const there = document.querySelector(each.getAttribute("href"));
        each.click();
        return [each.getAttribute("href"), there.getBoundingClientRect().top, bar()];
      });
    """)
    assert bars and [each for each in bars if each[1] < each[2]] == []


def test_a_table_sorts_by_a_column_and_back(window: Browser, page: Path) -> None:
    window.show(page, 1280, 800)
    first, second = window.run("""
      const table = [...document.querySelectorAll("table")].find(each => each.querySelector("th button")
        && each.querySelectorAll("tbody:not(.group) tr").length > 3);
      const head = table.tHead.rows[0].cells.length - 1;
      const lines = table.querySelectorAll("tr").length;
      const read = () => [...[...table.tBodies].find(body => !body.classList.contains("group")).rows]
        .map(row => row.cells[head].textContent);
      const button = table.tHead.rows[0].cells[head].querySelector("button");
      button.click();
      const first = [table.tHead.rows[0].cells[head].getAttribute("aria-sort"), read()];
      button.click();
      if (lines !== table.querySelectorAll("tr").length) throw "lines are lost";
      return [first, [table.tHead.rows[0].cells[head].getAttribute("aria-sort"), read()]];
    """)
    assert [first[0], second[0]] == ["ascending", "descending"]
    assert sorted(first[1]) == sorted(second[1]) and len(first[1]) > 1


def test_sections_fold_unfold_by_a_link_and_stand_open_in_print(window: Browser, page: Path) -> None:
    window.show(page, 1280, 800)
    fold = "const button = document.querySelector('#again h2 button'); button.click(); return [button.ariaExpanded, "
    shown = "getComputedStyle(document.querySelector('#again pre')).display"
    window.run("if (document.querySelector('#again').classList.contains('folded')) location.hash = '#again'")
    assert window.run(f"{fold}{shown}]") == ["false", "none"]
    window.run("document.querySelector('nav a[href=\"#again\"]').click()")
    assert window.wait(f"const done = arguments[0]; setTimeout(() => done({shown}), 100)") == "block"
    window.run("document.querySelector('#again h2 button').click()")
    window.protocol("Emulation.setEmulatedMedia", media="print")
    assert window.run(f"return {shown}") == "block"


def test_no_script_runs_but_that_of_the_page(window: Browser, page: Path) -> None:
    planted = "<p id='seen'>seen</p><script>document.querySelector('#seen').remove()</script>"
    copy = page.with_name("planted.html")
    copy.write_text(page.read_text().replace("</main>", f"{planted}<base href='https://example.org/'></main>"))
    window.show(copy, 1280, 800)
    assert window.run("return document.querySelector('#seen').textContent") == "seen"
    assert window.run("return document.baseURI") == copy.as_uri()


def test_every_figure_links_its_data(window: Browser, page: Path) -> None:
    window.show(page, 1280, 800)
    links = window.run(
        "return [...document.querySelectorAll('figure:has(svg)')].map(e => e.querySelector('a')?.href ?? e.id)"
    )
    assert links
    for link in links:
        assert link.startswith(("data:text/csv;base64,", (page.parent / "figures").as_uri())), link
