"""Boundary distance: members lie further from it (Choquette-Choo et al.; Li and Zhang 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.arrays import Floats
from audits.errors import BadInput
from audits.mia.answers import Case
from audits.mia.attacks.base import MIA_ATTACKS, Attack, Finding, against_known
from audits.queries.access import Access


@MIA_ATTACKS.register("boundary_distance")
@dataclass(frozen=True)
class BoundaryDistance(Attack):
    """Distance to the boundary by HopSkipJump (Choquette-Choo et al., arXiv 2007.14321; Li and Zhang, 2007.15528).

    Score: the L2 distance from the point to the nearest input of another label that the search found; negative where
    the label is wrong. A search that finds no way across counts as the smallest distance of its model.

    Source: Choquette-Choo et al., arXiv 2007.14321; Li and Zhang, arXiv 2007.15528; the search is HopSkipJump (arXiv
    1904.02144).

    Deviations: one threshold, from known non-members, where the papers tune it on shadows.

    Cost: no shadows; some hundred labels a point, so that some of the pool's points are asked about
    (``audit.hop_skip_jump``).

    Not for: recorded answers, and models behind a limit of requests: each label decides what is asked next.
    """

    access: ClassVar[Access] = "labels"
    subset: ClassVar[bool] = True

    def find(self, case: Case) -> Finding:
        """Return the signed distances (T, D)."""
        seen = case.distances
        if seen is None:
            raise BadInput(f"attack {self.name} reads distances, which are missing")
        return against_known(fill_missing(seen.distance), fill_missing(seen.known), seen.points, seen.queries)


def fill_missing(distance: Floats) -> Floats:
    """Return distances (A, D) with the smallest of the row in the place of each that is NaN, 0 in a row of NaN."""
    known = np.isfinite(distance)
    least = np.where(known, distance, np.inf).min(axis=1, keepdims=True)
    return np.where(known, distance, np.where(np.isfinite(least), least, 0.0))
