"""The finding of an attack on each single target, as one number: what a choice among settings compares.

``advantage``: members called, as a share of the target's members among all K candidates, less the same of non-members.
Candidates that a selector did not choose, or that were not asked with labels, count as not called. So settings that
choose few candidates and settings that choose many are compared at the budget of labels that both have. Chance: 0.

The others look at the chosen candidates alone. ``precision``: members among those called; a target of whom none is
called is guessed at (members among the chosen candidates, one half where none is chosen). ``coverage``: members called
among those chosen. ``auc``: over the chosen; one half where all are members or none is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audits.arrays import Floats
from audits.errors import BadInput, did_you_mean
from audits.statistics import roc
from audits.statistics.precision import Tally, tally
from audits.tmia.cells import Columns, Judged, matrices_of

MEASURES = ("advantage", "precision", "coverage", "auc")
ALL = "all"
"""The selection of every candidate, of attacks that read more than labels."""


def per_target(
    columns: Columns, attack: str, selection: str, measure: str, *, selectors: Sequence[str], candidates: int
) -> dict[int, float]:
    """Return target → ``measure`` of an ``attack`` on the candidates of a ``selection``, from one setting's scores.

    ``columns``: the table of scores of one setting (``audits.tmia.cells.scores_rows``), with a column for each of
    ``selectors``; ``candidates``: K, of which each target trained on half. BadInput for an unknown measure.
    """
    if measure not in MEASURES:
        raise BadInput(f"{measure!r} is no measure{did_you_mean(measure, MEASURES)}; allowed: {', '.join(MEASURES)}")
    seen = matrices_of(attack, columns, selectors)
    if selection != ALL:
        seen = seen.on(seen.sets[selection])
    counts = tally(seen.decision["target"], seen.member)
    values = areas(seen) if measure == "auc" else {
        "advantage": advantages(counts, candidates),
        "precision": precisions(counts),
        "coverage": ratios(counts.true_positives, counts.members, 0.0),
    }[measure]  # fmt: skip
    return {target: float(value) for target, value in enumerate(values)}


def advantages(counts: Tally, candidates: int) -> Floats:
    """Return TP/(K/2) − FP/(K/2) of each target (T,)."""
    return 2 * (counts.true_positives - counts.false_positives) / candidates


def precisions(counts: Tally) -> Floats:
    """Return TP/(TP + FP) of each target (T,), of a target without calls the share of members."""
    called = counts.true_positives + counts.false_positives
    guess = ratios(counts.members, counts.members + counts.non_members, 0.5)
    return np.where(called > 0, ratios(counts.true_positives, called, 0.0), guess)


def ratios(hits: Floats, trials: Floats, otherwise: float) -> Floats:
    """Return hits over trials (T,); ``otherwise`` where there are none."""
    found: Floats = np.full(hits.shape, otherwise)
    np.divide(hits, trials, out=found, where=trials > 0)
    return found


def areas(seen: Judged) -> Floats:
    """Return the AUC of each target (T,)."""
    both = zip(seen.score, seen.member, strict=True)
    return np.array([roc.auc(own, inside) if inside.any() and not inside.all() else 0.5 for own, inside in both])
