"""Differences that may be called statistically significant, and Holm's correction over these.

The rule: a difference is statistically significant only if its interval lets shadow models vary. It does where both
sides have several units (targets, pools, sets of targets) and each unit has shadow models of its own, since units then
differ in their shadows too. It does not

- with a single target, such as a given model: the interval is over points, and the shadows behind the scores are held
  fixed, as is the one training of the target;
- where all targets share one set of shadows: the interval is over targets, and another draw of these shadows would move
  the scores of all targets together.

Such differences keep their interval and their uncorrected p-value, which hold for these shadows alone. Nor is there a
hypothesis where both sides have the same scores, point by point, as controls that were made from the same seed and data
have: the difference is zero by construction. Neither kind is in the family that Holm's correction is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from audits.statistics.null import holm
from orchestrator.compared.rows import POINTS_ONLY, SHADOWS_TOO, TARGETS_ONLY, DifferenceRow, Over
from orchestrator.compared.sides import Said


def interval_over(one: Said, other: Said) -> Over:
    """Return what the interval of a difference between two attacks lets vary."""
    if min(np.unique(each.judged.unit).size for each in (one, other)) < 2:
        return POINTS_ONLY
    return SHADOWS_TOO if one.own_shadows and other.own_shadows else TARGETS_ONLY


def in_family(row: DifferenceRow) -> bool:
    """Say whether a difference can be statistically significant."""
    return row.p is not None and row.over == SHADOWS_TOO and not row.identical


def corrected(rows: Sequence[DifferenceRow], level: float) -> list[DifferenceRow]:
    """Return rows with Holm's correction over those that can be significant; the others have no corrected p-value."""
    family = [place for place, row in enumerate(rows) if in_family(row)]
    found = list(rows)
    for place, adjusted in zip(family, holm(np.array([rows[place].p for place in family])).tolist(), strict=True):
        found[place] = replace(rows[place], p_holm=adjusted, differs=bool(adjusted <= 1.0 - level))
    return found


def covers(rows: Sequence[DifferenceRow], level: float, elsewhere: bool = False) -> str:
    """Return in words what the intervals let vary; ``elsewhere``: of scores whose shadow models are not known."""
    states = {row.over for row in rows}
    said = []
    if SHADOWS_TOO in states:
        said.append(
            f"The {level:.0%} intervals are over targets, each with its own shadow models, and over points that "
            "several targets or both runs share."
        )
        if elsewhere:
            said.append(
                "How targets of scores from elsewhere share shadow models is not known: if they do, these are held "
                "fixed, and no difference may be called statistically significant."
            )
    if TARGETS_ONLY in states:
        said.append(
            f"{'Where' if len(states) > 1 else 'Since'} all targets share the same shadow models, the {level:.0%} "
            "intervals are over targets and points with shadows held fixed: other shadows may differ more, so nothing "
            "is called statistically significant there."
        )
    if POINTS_ONLY in states:
        said.append(
            f"With one target a run, the {level:.0%} intervals are over points with shadows held fixed: they say "
            "nothing about other targets, trainings or shadow models, so nothing is called statistically significant "
            "there."
        )
    return " ".join(said)
