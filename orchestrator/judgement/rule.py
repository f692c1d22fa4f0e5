"""The rule by which findings and controls become a verdict, the same for all kinds of audits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from audits.errors import how_many
from audits.statistics.intervals import student_quantile
from audits.statistics.power import detectable_auc, detectable_shift
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import FAILED, HELD, LEAK, NONE_SEEN, UNTOLD, Control, Finding, Level, Verdict
from orchestrator.judgement.wording import (
    FOUR_IN_FIVE,
    SEEN,
    SMALL,
    Wording,
    headline,
    leaky_elsewhere,
    named,
    said,
    unnoticed,
)

BLUNT = 0.25
"""Distance from chance: a null result that could have missed more than this tells nothing."""
FEW_POINTS = 100
"""Models that train on so few points say nothing of a model in use."""


def verdict_of(
    *,
    main: Sequence[Finding],
    others: Mapping[str, tuple[Sequence[Finding], Sequence[Control]]] | None = None,
    controls: Sequence[Control],
    of_settings: Mapping[str, Sequence[Control]] | None = None,
    wording: Wording,
    tested: str,
    access: Sequence[str],
    certainty: str,
    too_small: str = "",
    about: str = "",
) -> Verdict:
    """Return the verdict of a run from ``main`` findings and ``controls``, and those of ``others`` by setting.

    ``others``: the further settings of a sweep, which the headline counts. ``of_settings``: where ``main`` findings are
    of several settings, the controls of each, by which it is judged; ``controls`` are then what is told of them all.
    """
    own = of_settings or {}
    found = [said(as_controlled(each, own.get(each.setting, controls)), wording) for each in main]
    further = [said(each, wording) for rows, theirs in (others or {}).values() for each in judged(rows, theirs)]
    level: Level = UNTOLD if too_small else worst(found)
    if level == NONE_SEEN and leaky_elsewhere(found, further):
        level = UNTOLD  # neither an all-clear nor a leak: the number of settings is not corrected for
    said_first = headline(found, further, wording, too_small)
    if SEEN not in said_first:
        certainty = " ".join(certainty.replace(FOUR_IN_FIVE, "").split())
    return Verdict(
        level=level,
        headline=said_first,
        findings=(*found, *further),
        tested=tested,
        access=tuple(access),
        certainty=certainty,
        controls=tuple(noted(controls, {name: own for name, (_, own) in (others or {}).items()})),
        advice=wording.advice[SMALL if too_small else advised(level, controls)],
        too_small=too_small,
        about=about,
    )


def noted(controls: Sequence[Control], elsewhere: Mapping[str, Sequence[Control]]) -> list[Control]:
    """Return the controls of the main setting with a note on those that failed in other settings of the run."""
    found = []
    for control in controls:
        names = [
            name
            for name, own in elsewhere.items()
            if any(each.name == control.name and each.state == FAILED for each in own)
        ]
        note = f" Failed in {how_many(len(names), 'other setting')}: {named(names)}." if names else ""
        found.append(replace(control, text=control.text + note))
    return found


def worst(found: Sequence[Finding]) -> Level:
    """Return the level of a run: a leak before what cannot be told, that before no leak."""
    levels = {each.level for each in found}
    order: tuple[Level, ...] = (LEAK, UNTOLD, NONE_SEEN)
    return next((level for level in order if level in levels), UNTOLD)


def advised(level: str, controls: Sequence[Control]) -> str:
    """Return which advice a verdict asks for: its level, or that a control failed."""
    return FAILED if level == UNTOLD and any(each.state == FAILED for each in controls) else level


def judged(findings: Sequence[Finding], controls: Sequence[Control]) -> list[Finding]:
    """Return findings as ``controls`` and their own power leave them.

    Where a control of truth failed, nothing can be told; where one of power failed or is missing, or the run is too
    small to have seen a leak, no null result counts.
    """
    return [as_controlled(each, controls) for each in findings]


def as_controlled(finding: Finding, controls: Sequence[Control]) -> Finding:
    """Return a finding as ``controls`` and its own power leave it."""
    if lost := [each.name for each in controls if each.of == "truth" and each.state == FAILED]:
        return replace(finding, level=UNTOLD, why=f"a control failed: {', '.join(lost)}", seen_from=None)
    if finding.level != NONE_SEEN:
        return finding
    if weak := [each for each in controls if each.of == "power" and each.state != HELD]:
        failed = next((each for each in weak if each.state == FAILED), None)
        why = f"no control shows that a leak would be seen ({weak[0].name}: {weak[0].state})"
        if failed:
            why = f"no null result counts beside a control that failed: {failed.name}"
        return replace(finding, level=UNTOLD, why=why, seen_from=None)
    if finding.seen_from is None or finding.chance is None or finding.seen_from - finding.chance > BLUNT:
        return replace(finding, level=UNTOLD, why=unnoticed(finding))
    return finding


def few_points(train_size: Any, noun: str) -> str:
    """Return why models of so few training points mean nothing; "" for larger ones and where the size is not known."""
    if not isinstance(train_size, int) or train_size > FEW_POINTS:
        return ""
    return f"its models were trained on {train_size} {noun} each"


def seen_above_chance(
    auc: Estimate, members: float, others: float, units: int, level: float, tests: int, *, grouped: bool = False
) -> float | None:
    """Return the smallest AUC that would have been called above chance, of so many tests; None where none is known.

    ``auc``: the mean over ``units``, in each of which ``members`` are told from ``others``. It must be found by the
    permutation test and by its interval (``audits.statistics.chance``). ``grouped``: points were dealt in groups, so
    that permutations vary by more than the formula for single points says; then by the interval alone.
    """
    half, degrees = max(auc.errors) if auc.bounded else 0.0, units - 1 if units > 1 else math.inf
    by_interval = 0.5 + detectable_shift(half, degrees, level)
    if grouped:
        return by_interval if auc.bounded and units > 1 else None
    error = half / student_quantile(level, degrees)
    return max(by_interval, detectable_auc(members, others, units, error, level, tests))
