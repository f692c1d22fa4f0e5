"""What is demanded of every page: it fits its window, asks nobody, is accessible, and begins with the verdict."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from orchestrator.judgement.wording import STATES
from orchestrator.report.result import read_result
from tests.cases.browser import Browser

WINDOWS = [(1280, "light", "screen"), (400, "dark", "screen"), (1280, "light", "print")]
OTHERS = [(1280, "dark", "screen"), (400, "light", "screen"), (700, "light", "print")]
SIDEWAYS = """
const wide = [...document.querySelectorAll("body *")].filter(each =>
  each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".scroll, .wide, pre"));
return [document.documentElement.scrollWidth, innerWidth, wide.slice(0, 3).map(each => each.outerHTML.slice(0, 200))];
"""
# Figures are pictures with a description: what is inside them is presentation.
JUDGE = """
const done = arguments[arguments.length - 1];
axe.run({exclude: [["figure svg"]]}, {resultTypes: ["violations"]}).then(found => done(found.violations
  .filter(each => ["serious", "critical"].includes(each.impact))
  .map(each => `${each.id}: ${each.nodes[0].html.slice(0, 200)}`)), error => done([String(error)]));
"""
CUT = """
document.querySelectorAll("details").forEach(each => each.open = true);
document.querySelectorAll("section.folded").forEach(each => each.classList.remove("folded"));
return [...document.querySelectorAll(".scroll")].filter(each => each.scrollWidth > each.clientWidth)
  .map(each => [each.querySelector("thead").innerText, each.scrollWidth, each.clientWidth]);
"""
HEIGHT = 800
WIDE = 1280
"""Pixels of a window that shows every table of a default run whole."""
MOST_BYTES = 2_000_000


def fits_asks_nobody_and_is_accessible(window: Browser, page: Path, width: int, scheme: str, media: str) -> None:
    """Open a page and look at its width, its console, what it asked for, and at what axe finds in it."""
    window.show(page, width, HEIGHT, scheme, media)
    scroll, inner, wide = window.run(SIDEWAYS)
    assert scroll <= inner == width and wide == [], (scroll, inner, width, wide)
    console, asked = window.logged()
    assert console == [], console
    assert {url for url in asked if not url.startswith("chrome:")} == {page.as_uri()}, asked
    axe = find_spec("axe_core_python")
    assert axe is not None and axe.submodule_search_locations is not None
    window.run((Path(axe.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8"))
    found = window.wait(JUDGE)
    assert found == [], found


def no_table_is_cut(window: Browser, page: Path) -> None:
    """Open a page in a wide window, with all of its sections, and look for tables that do not fit."""
    window.show(page, WIDE, HEIGHT)
    cut = window.run(CUT)
    assert cut == [], cut


def the_first_screen_is_the_verdict(window: Browser, page: Path) -> None:
    """Open a report and look for all of its verdict on the first screen; the file is not too large to be mailed."""
    document = read_result(page.parent)
    verdict = document["verdict"]
    window.show(page, 1280, HEIGHT)
    bottom, text = window.run(
        "const all = document.querySelector('#answer dl'); return [all.getBoundingClientRect().bottom, "
        "document.querySelector('#answer').innerText]"
    )
    assert bottom <= HEIGHT, bottom
    for said in (verdict["headline"], verdict["advice"], verdict["certainty"], verdict["tested"]):
        assert " ".join(said.split()) in " ".join(text.split()), (said, text)
    if "gate" in document:
        assert document["gate"]["outcome"].capitalize() in text.partition("Release gate")[2]
    for control in verdict["controls"]:
        assert STATES[control["state"]] in text
    assert page.stat().st_size < MOST_BYTES, page.stat().st_size
