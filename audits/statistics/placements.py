"""Placements: for each point, the share of points of the other group that its score beats. The AUC is their mean.

They are what DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988) take the variance of an AUC from, without the
matrix of all pairs: n log n steps for n points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats


def placements(scores: Floats, member: Bools) -> Floats:
    """Return (n,): of a member the share of non-members below it, of a non-member the share of members above it.

    Equal scores count by half. Both groups must be there.
    """
    found = np.empty(len(scores))
    inside, outside = scores[member], scores[~member]
    found[member] = _twice_beaten(inside, outside) / 2 / outside.size
    found[~member] = (2 * inside.size - _twice_beaten(outside, inside)) / 2 / inside.size
    return found


def _twice_beaten(scores: Floats, others: Floats) -> NDArray[np.int64]:
    """Return twice the number of ``others`` that each score is above, equal ones by half."""
    ordered = np.sort(others)
    order = np.argsort(scores)  # sorted needles are found several times faster
    ranked = scores[order]
    found = np.empty(len(scores), dtype=np.int64)
    found[order] = np.searchsorted(ordered, ranked, side="left") + np.searchsorted(ordered, ranked, side="right")
    return found
