"""Differences between sides: every metric of every attack that both have, paired where they share targets or points."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from audits.errors import BadInput, did_you_mean
from audits.statistics.judged import Judged
from audits.statistics.null import holm
from audits.statistics.paired import AUC, FPR, METRICS, PRECISION, TPR, difference, measured
from audits.statistics.shared_targets import same_scores, shared_targets
from orchestrator.compared.rows import DifferenceRow, PairRow
from orchestrator.compared.sides import Side, matched, only_in_one
from orchestrator.report.rows import Estimate

ALL, SOME, POINTS, NOTHING = "targets", "some targets", "points", "nothing"
ORDER = (ALL, SOME, POINTS, NOTHING)
PROMISED = re.compile(r"\d*\.?\d+(e-?\d+)?")


def pairs_of(sides: Sequence[Side], all_pairs: bool) -> list[tuple[Side, Side]]:
    """Return every other side beside the first, or all pairs."""
    return list(combinations(sides, 2)) if all_pairs else [(sides[0], other) for other in sides[1:]]


def compared(
    sides: Sequence[Side], *, metrics: Sequence[str], attacks: Sequence[str], level: float, all_pairs: bool = False
) -> tuple[list[PairRow], list[DifferenceRow], list[str]]:
    """Return what is paired in each pair of sides, all differences with Holm's correction, and notes.

    Raises BadInput for metrics and attacks that no two sides have.
    """
    for name in metrics:
        if name not in METRICS:
            raise BadInput(f"--metric {name!r}{did_you_mean(name, METRICS)}; allowed: {', '.join(METRICS)}")
    told: list[PairRow] = []
    rows: list[DifferenceRow] = []
    notes: list[str] = []
    for first, second in pairs_of(sides, all_pairs):
        found = matched(first, second)
        names = list(dict.fromkeys(one.attack for one, _ in found))
        for name in attacks:
            if name not in names:
                raise BadInput(
                    f"--attack {name!r}{did_you_mean(name, names)}: {first.label} and {second.label} both have "
                    f"{', '.join(names)}"
                )
        notes += only_in_one(first, second, found)
        found = [(one, other) for one, other in found if not attacks or one.attack in attacks]
        if not metrics or {TPR, PRECISION} & {*metrics}:
            notes += without_rates(first, second, found)
        alike = [first.data == second.data and same_scores(one, other) for one, other in found]
        # The same scores in another order differ by rounding errors.
        found = [(one, one if same else other) for (one, other), same in zip(found, alike, strict=True)]
        made = [row for one, other in found for row in rows_of(first, second, one, other, metrics, level)]
        if not made:
            raise BadInput(f"{first.label} and {second.label} have none of {', '.join(metrics)} in common")
        loosest = max(made, key=lambda row: ORDER.index(row.paired))
        equal = all(alike)
        told.append(
            PairRow(
                first=first.label,
                second=second.label,
                paired=loosest.paired,
                reason=reason(first, second, loosest)
                + (" Their scores are identical, point by point." if equal else ""),
                identical=equal,
            )
        )
        rows += made
    return told, corrected(rows, level), list(dict.fromkeys(notes))


def rows_of(
    first: Side, second: Side, one: Judged, other: Judged, metrics: Sequence[str], level: float
) -> Iterator[DifferenceRow]:
    """Yield the differences of an attack between two sides, second minus first."""
    same_data = first.data == second.data
    shared = shared_targets(other, one) if same_data else []
    for metric, decision in measures(one, other):
        if (metrics and metric not in metrics) or (
            metric in (TPR, PRECISION) and (void(first, one) or void(second, other))
        ):
            continue
        try:
            values = measured(other, metric, decision), measured(one, metric, decision)
        except BadInput:
            continue  # precision is 0/0 in one of them
        found = difference(*values, shared, same_data, level)
        yield DifferenceRow(
            first=first.label,
            second=second.label,
            setting=one.setting,
            attack=one.attack,
            metric=metric,
            promised_fpr=float(decision) if PROMISED.fullmatch(decision) else None,
            first_value=found.b,
            second_value=found.a,
            difference=Estimate(found.value, found.low, found.high),
            p=found.p,
            paired=pairing(found.shared, found.targets, found.shared_points),
            shared_targets=found.shared,
            first_targets=found.targets[1],
            second_targets=found.targets[0],
            shared_points=found.shared_points,
        )


def void(side: Side, judged: Judged) -> bool:
    """Say whether an attack broke a promised rate in the run of a side."""
    return judged.place in side.void


def without_rates(first: Side, second: Side, found: Sequence[tuple[Judged, Judged]]) -> list[str]:
    """Return a note for each side in which attacks broke a promised rate: their hit rates are not compared."""
    notes = []
    for side, place in ((first, 0), (second, 1)):
        own = [pair[place] for pair in found]
        if broken := dict.fromkeys("/".join(filter(None, each.place)) for each in own if void(side, each)):
            notes.append(
                f"{side.label}: {', '.join(broken)} broke a promised false-alarm rate: hit rates are void there, "
                "and not compared"
            )
    return notes


def measures(one: Judged, other: Judged) -> list[tuple[str, str]]:
    """Return the metrics that two attacks have in common, each with the decision that it counts."""
    found = [(AUC, "")]
    for decision in one.decisions:
        if decision in other.decisions:
            found += [(metric, decision) for metric in ((TPR, FPR) if decision else (PRECISION, TPR, FPR))]
    return found


def pairing(shared: int, targets: tuple[int, int], points: int) -> str:
    """Return what two sides share, in a word."""
    if shared:
        return ALL if shared == targets[0] == targets[1] else SOME
    return POINTS if points else NOTHING


def reason(first: Side, second: Side, row: DifferenceRow) -> str:
    """Return in a sentence what is paired, and why."""
    sizes = f"{row.first_targets} and {row.second_targets}"
    if row.paired == ALL:
        count = f"all {row.shared_targets} targets were" if row.shared_targets > 1 else "the one target was"
        return f"Paired: {count} queried about the same points with the same members in both."
    if row.paired == SOME:
        return (
            f"Partly paired: {row.shared_targets} of {sizes} targets were queried about the same points with the same "
            "members; the others are not paired."
        )
    if row.paired == POINTS:
        return (
            f"Points are paired, targets are not: {row.shared_points} points are in both, with different members. "
            f"Targets ({sizes}) vary independently, which makes intervals wider."
        )
    if first.data != second.data:
        return f"Unpaired: the data differ ({first.data} and {second.data}), so no point is shared."
    return f"Unpaired: no point is known to be in both; targets ({sizes}) and points vary independently."


def corrected(rows: Sequence[DifferenceRow], level: float) -> list[DifferenceRow]:
    """Return rows with Holm's correction over all whose p-value is known."""
    known = [place for place, row in enumerate(rows) if row.p is not None]
    found = list(rows)
    for place, adjusted in zip(known, holm(np.array([rows[place].p for place in known])).tolist(), strict=True):
        found[place] = replace(rows[place], p_holm=adjusted, differs=bool(adjusted <= 1.0 - level))
    return found


def covers(rows: Sequence[DifferenceRow], level: float) -> str:
    """Return in a sentence what the intervals let vary."""
    single = [row for row in rows if min(row.first_targets, row.second_targets) < 2]
    if len(single) == len(rows):
        return (
            f"The {level:.0%} intervals are over points. With one target a run they say nothing about other targets or "
            "trainings."
        )
    return (
        f"The {level:.0%} intervals are over targets, and over points that several targets or both runs share. "
        "Whatever serves many targets, such as shadow models, is held fixed: another draw of it may differ more."
    )
