"""Numbers that rest on a broken promise are void in every reader of a headline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.engine.ci.summary import number_table
from orchestrator.judgement.controls import promised
from orchestrator.judgement.gate import judge_gates, parse_gate
from orchestrator.judgement.lines import Line
from orchestrator.kinds import kind_named
from orchestrator.report.gate_words import limit_words


def cells_of(kind: str, values: dict[str, Any]) -> dict[str, str]:
    """Return what the summary shows of a line, by metric."""
    headline = kind_named(kind).headline
    (text,) = number_table(headline, [Line(("a",), values, "here", worst=True)])
    head, _, row = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines())
    return dict(zip(head[1:], row[1:], strict=True))


@pytest.mark.parametrize(
    ("kind", "void"),
    [("apollo", {"tpr"}), ("mia", {"tpr", "tpr_low"}), ("tmia", {"precision", "precision_low"}), ("gnq", set())],
)
def test_the_summary_shows_no_number_that_rests_on_a_broken_promise(kind: str, void: set[str]) -> None:
    values: dict[str, Any] = dict.fromkeys(kind_named(kind).headline.summary, 0.25)
    for kept in ({}, {"void": False}, {"fpr_off": True}):  # a rate on many targets that is off voids nothing
        assert set(cells_of(kind, values | kept).values()) == {"0.250"}
    shown = cells_of(kind, values | {"void": True})
    assert {name for name, text in shown.items() if text == "void"} == void
    assert {text for name, text in shown.items() if name not in void} <= {"0.250"}


def test_a_void_line_is_not_the_worst_by_a_void_number() -> None:
    lines = [
        Line(("a",), {"precision_low": 0.9, "void": True}, "void", worst=True),
        Line(("b",), {"precision_low": 0.6}, "kept", worst=True),
    ]
    (text,) = number_table(kind_named("tmia").headline, lines)
    assert [line.split(" | ")[0].strip("| ") for line in text.splitlines()[2:]] == ["kept", "void"]


@pytest.mark.parametrize(("limit", "outcome"), [(0.5, "failed"), (0.7, "inconclusive")])
def test_a_gate_takes_no_void_number_and_judges_those_that_stand(limit: float, outcome: str) -> None:
    lines = [
        Line(("a",), {"tpr": 0.913, "void": True}, "a", True, setting="base"),
        Line(("b",), {"tpr": 0.6, "void": False}, "b", True, setting="base"),
    ]
    headline = replace(
        kind_named("mia").headline,
        lines=lambda document: lines,
        lost=lambda plan, document: [],
    )
    gates = [parse_gate(f"{name}={limit}", headline) for name in ("tpr", "a.tpr")]
    both, alone = judge_gates(gates, headline, None, {"controls": [promised("base", ["a"]).write()]}).limits
    assert (both.value, both.where, both.outcome) == (0.6, "b", outcome)
    assert (alone.value, alone.where, alone.outcome, alone.void) == (None, "a", "inconclusive", True)
    for told in (both.sentence(), alone.sentence(), limit_words(alone, str)):
        assert "void" in told and "913" not in told and "91.3" not in told
