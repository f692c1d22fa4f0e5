"""A table is as wide as its terminal allows, and what does not fit is left out whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from orchestrator.report.fitted import LEFT_OUT, Fitted
from orchestrator.report.grid import Column, Entry, Grid, Group

INTERVAL = Entry(".512", "[.401, .623]", "*")
NAMES = ("Apollo", "a name of one’s own")
COLUMNS = (
    Column("attack", "left"),
    Column("AUC\n[95 %]"),
    Column("TPR [95 %]"),
    Column("found"),
    Column("hidden", narrow="nothing"),
)
LINES = tuple((Entry(name), INTERVAL, INTERVAL, Entry(".100"), Entry("secret")) for name in NAMES)
GRID = Grid("attacks", "Attacks", COLUMNS, (Group("Labels only", LINES),), caption="one caption")


def drawn(width: int, grid: Grid = GRID) -> str:
    """Return a table as a terminal of ``width`` columns shows it."""
    console = Console(width=width, file=io.StringIO(), legacy_windows=False)
    with console.capture() as captured:
        console.print(Fitted(grid))
    return captured.get()


def test_a_wide_terminal_shows_all() -> None:
    text = drawn(100)
    assert text.count("[.401, .623]*") == 4 and "found" in text and LEFT_OUT not in text
    assert "hidden" not in text


@pytest.mark.parametrize("width", range(20, 81, 3))
def test_no_width_cuts_a_number_in_two(width: int) -> None:
    text = drawn(width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert " ".join(LEFT_OUT.split()) in " ".join(text.split()) or text.count("[.401, .623]*") == 4
    assert text.count(".512") in (2, 4)


def test_intervals_go_before_columns_and_the_last_first() -> None:
    less = drawn(52)
    assert less.count("[.401, .623]*") == 2 and less.count(".512") == 4 and "found" in less
    assert "TPR [95" not in less and "[95 %]" in less
    least = drawn(36)
    assert least.count(".512") == 2 and "found" not in least and "[95 %]" not in least


@pytest.mark.parametrize("width", range(30, 131, 10))
def test_columns_that_narrow_together_show_all_intervals_and_name_them_or_none(width: int) -> None:
    columns = (Column("setting", "left"), *(Column(f"{name}\n[95 %]", narrow="together") for name in "abcd"))
    lines = tuple((Entry(name), *[INTERVAL] * 4) for name in NAMES)
    text = drawn(width, Grid("crossed", "AUC by setting", columns, (Group("", lines),)))
    shown = text.count("[.401, .623]*"), text.count("[95 %]")
    assert shown == ((8, 4) if width >= 100 else (0, 0))
