"""The one rule for an AUC above chance, behind every flag, star and word "leak" about an AUC with a p-value.

A permutation test says that the points which were asked about are told apart in the models that were asked. Its
interval says how far that varies: over targets or pools, or over points and shadows of a given model. Each may see what
the other does not: permutations hold shadows still, and a t interval over few targets is wide. What is called above
chance is so by both.
"""

from __future__ import annotations

from typing import Final, Literal

ABOVE: Final = "above"
UNSURE: Final = "unsure"
BELOW: Final = "below"
NULL: Final = "null"
Standing = Literal["above", "unsure", "below", "null"]
CHANCE = 0.5


def standing(auc: float | None, low: float | None, p_holm: float | None, level: float) -> Standing:
    """Return where an AUC stands to one half.

    ``low``: lower end of its interval at confidence ``level``; ``p_holm``: two-sided p-value of one half, after Holm's
    correction over all that is tested with it. "null": that is more than 1 − level. Else "below": the AUC is no larger
    than one half; "above": the interval lies above one half, too; "unsure": it does not, or there is none.
    """
    if auc is None or p_holm is None or not p_holm <= 1.0 - level:
        return NULL
    if not auc > CHANCE:
        return BELOW
    return ABOVE if low is not None and low > CHANCE else UNSURE
