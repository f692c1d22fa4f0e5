"""The pages of the default audits, of a sweep and of a smoke run, made by the commands that users give.

``--basetemp DIR`` keeps the pages and their pictures; the rankings, models and answers of all are in one store.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.browser import BROWSER, Browser, browser
from tests.cases.page_checks import HEIGHT, OTHERS, WINDOWS, fits_asks_nobody_and_is_accessible, no_table_is_cut
from tests.cases.page_checks import the_first_screen_is_the_verdict as first_screen

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600), pytest.mark.needs("bash"), BROWSER]  # Ray needs it

ORCH = (sys.executable, "-m", "orchestrator.cli.main")
COMMANDS = {
    "mia": ("audit", "mia"),
    "gnq": ("audit", "gnq"),
    "apollo": ("audit", "apollo"),
    "tmia": ("audit", "tmia"),
    "sweep": ("sweep", "apollo-demo"),
    "smoke": ("audit", "apollo", "apollo-smoke"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def window(place: Path) -> Iterator[Browser]:
    with browser(place / "profile") as opened:
        yield opened


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_page_is_as_people_need_it(name: str, place: Path, window: Browser) -> None:
    words = (*COMMANDS[name], "--out", name, "--store", "store")
    begin = time.monotonic()
    page = place / name / "report.html"
    with (place / f"{name}.log").open("w+") as said:
        with subprocess.Popen([*ORCH, *words], cwd=place, stdout=said, stderr=said) as run:
            unfinished(window, page, run)
        said.seek(0)
        assert run.returncode == 0, said.read()[-3000:]
    took = time.monotonic() - begin
    logging.getLogger(__name__).info(json.dumps({"page": name, "seconds": round(took), "bytes": page.stat().st_size}))
    first_screen(window, page)
    window.picture(place / f"{name}.png")
    no_table_is_cut(window, page)
    for width, scheme, media in (*WINDOWS, *OTHERS):
        fits_asks_nobody_and_is_accessible(window, page, width, scheme, media)
        window.picture(place / f"{name}-{width}-{scheme}-{media}.png")


def unfinished(window: Browser, page: Path, run: subprocess.Popen[bytes]) -> None:
    """Look at the page while the run goes on, where it lasts long enough for that."""
    end = time.monotonic() + 60
    while time.monotonic() < end and run.poll() is None:
        if page.exists() and "not finished" in page.read_text(encoding="utf-8"):
            held = page.with_name("unfinished.html")
            held.write_bytes(page.read_bytes())
            for width, scheme, media in WINDOWS:
                fits_asks_nobody_and_is_accessible(window, held, width, scheme, media)
            window.show(held, 1280, HEIGHT)
            window.picture(page.parent.with_name(f"{page.parent.name}-unfinished.png"))
            return
        time.sleep(0.5)
