"""Which of two sides leaks less, by how much, and from which numbers."""

from __future__ import annotations

from collections.abc import Sequence

from audits.statistics.paired import AUC, PRECISION, TPR
from orchestrator.compared.rows import SHADOWS_TOO, CompareResult, DifferenceRow, PairRow
from orchestrator.compared.wording import name_of
from orchestrator.report.numbers import estimate, number

LEAKS = (AUC, TPR, PRECISION)
"""Metrics that are larger where more leaks, the first one that is compared counts."""


def said_of_leaks(run: CompareResult) -> list[str]:
    """Return a sentence for each pair of sides of which more than controls is compared."""
    return [said for pair in run.pairs for said in _said(run, pair)]


def _said(run: CompareResult, pair: PairRow) -> list[str]:
    of_pair = [row for row in run.table if (row.first, row.second) == (pair.first, pair.second)]
    own = [row for row in of_pair if not (row.control or row.identical)]
    metric = next((name for name in LEAKS if any(row.metric == name for row in own)), "")
    if not (rows := [row for row in own if row.metric == metric]):
        return []
    significant = [row for row in rows if row.differs]
    if not significant:
        most = _largest(rows)
        held = "" if most.over == SHADOWS_TOO else f", over {most.over}"
        return [
            f"Neither {pair.first} nor {pair.second} is shown to leak less: the largest difference is "
            f"{_numbers(run, most)}{held}."
        ]
    up, down = ([row for row in significant if (float(row.difference) > 0) == more] for more in (True, False))
    if up and down:
        return [
            f"Which of {pair.first} and {pair.second} leaks less depends on the attack: {pair.second} leaks less by "
            f"{_numbers(run, _largest(down))}, and more by {_numbers(run, _largest(up))}."
        ]
    less, more = (pair.second, pair.first) if down else (pair.first, pair.second)
    return [f"{less} leaks less than {more}: {_numbers(run, _largest(significant))}."]


def _largest(rows: Sequence[DifferenceRow]) -> DifferenceRow:
    return max(rows, key=lambda row: abs(float(row.difference)))


def _numbers(run: CompareResult, row: DifferenceRow) -> str:
    """Return a difference with both numbers that it is between."""
    return (
        f"{name_of(run, row)} {number(row.first_value)} ({row.first}) and {number(row.second_value)} ({row.second}), "
        f"{estimate(row.difference, signed=True)}"
    )
