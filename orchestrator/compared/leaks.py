"""The side of two that leaks less, by how much, and from which numbers."""

from __future__ import annotations

from collections.abc import Sequence

from audits.statistics.paired import AUC, FPR, PRECISION, TPR
from orchestrator.compared.rows import SHADOWS_TOO, CompareResult, DifferenceRow, PairRow
from orchestrator.compared.wording import name_of
from orchestrator.report.numbers import estimate, number

LEAKS = (AUC, TPR, PRECISION)
"""Metrics that are larger where more leaks, the plainest first."""


def said_of_leaks(run: CompareResult) -> list[str]:
    """Return a sentence for each pair of sides of which more than controls is compared."""
    return [said for pair in run.pairs for said in _said(run, pair)]


def _said(run: CompareResult, pair: PairRow) -> list[str]:
    of_pair = [row for row in run.table if (row.first, row.second) == (pair.first, pair.second)]
    own = [row for row in of_pair if not (row.control or row.identical)]
    # Of a hit rate or a precision alone nobody knows whether it differs by the threshold.
    rows = [row for row in own if row.metric in LEAKS and (row.metric == AUC or _rates(row, of_pair))]
    if not rows:
        return []
    significant = [row for row in rows if row.differs and not _only_calls_more(row, of_pair)]
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
            f"Which of {pair.first} and {pair.second} leaks less depends on attack and metric: {pair.second} leaks "
            f"less by {_numbers(run, _largest(down))}, and more by {_numbers(run, _largest(up))}."
        ]
    less, more = (pair.second, pair.first) if down else (pair.first, pair.second)
    return [f"{less} leaks less than {more}: {_numbers(run, _largest(significant))}."]


def _rates(row: DifferenceRow, rows: Sequence[DifferenceRow]) -> list[tuple[DifferenceRow, DifferenceRow]]:
    """Return the hit rate and the false-positive rate of the decisions that a row is of; none where one is left out."""
    of_decision = [
        each
        for each in rows
        if (each.setting, each.attack, each.promised_fpr) == (row.setting, row.attack, row.promised_fpr)
    ]
    hits, alarms = ([each for each in of_decision if each.metric == metric] for metric in (TPR, FPR))
    return list(zip(hits, alarms, strict=False))


def _only_calls_more(row: DifferenceRow, rows: Sequence[DifferenceRow]) -> bool:
    """Say whether rates differ because the threshold moved: hits and false alarms the same way, precision with them."""
    return row.metric != AUC and any(
        alarm.differs and (hit.differs or row.metric == TPR) and float(hit.difference) * float(alarm.difference) > 0
        for hit, alarm in _rates(row, rows)
    )


def _largest(rows: Sequence[DifferenceRow]) -> DifferenceRow:
    """Return the largest difference in the plainest metric that there is."""
    metric = min((row.metric for row in rows), key=LEAKS.index)
    return max((row for row in rows if row.metric == metric), key=lambda row: abs(float(row.difference)))


def _numbers(run: CompareResult, row: DifferenceRow) -> str:
    """Return a difference with both numbers that it is between."""
    return (
        f"{name_of(run, row)} {number(row.first_value)} ({row.first}) and {number(row.second_value)} ({row.second}), "
        f"{estimate(row.difference, signed=True)}"
    )
