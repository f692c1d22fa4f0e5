"""Numbers that rest on a broken promise are void in every reader of a headline."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.engine.ci.summary import number_table
from orchestrator.engine.headline import BROKEN, Line
from orchestrator.kinds import kind_named


def cells_of(kind: str, values: dict[str, Any]) -> dict[str, str]:
    """Return what the summary shows of a line, by metric."""
    headline = kind_named(kind).headline
    (text,) = number_table(headline, [Line(("a",), values, "here", worst=True)])
    head, _, row = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines())
    return dict(zip(head[1:], row[1:], strict=True))


@pytest.mark.parametrize("flag", BROKEN)
@pytest.mark.parametrize(
    ("kind", "void"),
    [("apollo", {"tpr"}), ("mia", {"tpr", "tpr_low"}), ("tmia", {"precision", "precision_low"}), ("gnq", set())],
)
def test_the_summary_shows_no_number_that_rests_on_a_broken_promise(kind: str, void: set[str], flag: str) -> None:
    values: dict[str, Any] = dict.fromkeys(kind_named(kind).headline.summary, 0.25)
    assert set(cells_of(kind, values | {flag: False}).values()) == {"0.250"}
    shown = cells_of(kind, values | {flag: True})
    assert {name for name, text in shown.items() if text == "void"} == void
    assert {text for name, text in shown.items() if name not in void} <= {"0.250"}


def test_a_void_line_is_not_the_worst_by_a_void_number() -> None:
    lines = [
        Line(("a",), {"precision_low": 0.9, "null_fpr_off": True}, "void", worst=True),
        Line(("b",), {"precision_low": 0.6}, "kept", worst=True),
    ]
    (text,) = number_table(kind_named("tmia").headline, lines)
    assert [line.split(" | ")[0].strip("| ") for line in text.splitlines()[2:]] == ["kept", "void"]
