"""Boundary distance: the farther the decision boundary, the likelier the model has seen the point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.calibration import weighed
from audits.apollo.evidence.boundary import Distances
from audits.apollo.evidence.parts import Evidence
from audits.arrays import Floats
from audits.queries.access import Access


@ATTACKS.register("boundary_distance")
@dataclass(frozen=True)
class BoundaryDistance(Attack):
    """Boundary distance (Choquette-Choo et al., arXiv 2007.14321) at equal queries, with the calibrated rule.

    Score: log-odds of "forgotten" by a logistic regression on the target's signed distance to its decision boundary,
    beside the point's own mean distances over pseudo-targets with and without it.

    Source: Choquette-Choo et al., arXiv 2007.14321.

    Deviations: the distance is weighed against the point's own mean distances over pseudo-targets, each half of the
    shadows apart, in place of one threshold for all points; a wrong label gives minus the distance to the true class,
    not zero; every model is asked within the same small budget, so distances are upper bounds.

    Cost: as many labels a point as ``apollo``, of the target and of every pseudo-target; ``split.shadows`` models
    trained and unlearned for each set of targets.

    Not for: recorded answers, and models behind a limit of requests: each label decides what is asked next.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("boundary",)

    def find(self, evidence: Evidence) -> Finding:
        found = evidence.part("boundary")
        assert isinstance(found, Distances), "this kind gathers distances"
        pseudo, target = bounded(found.pseudo, found.pseudo), bounded(found.target, found.pseudo)
        halves = (2, len(pseudo) // 2, len(target))
        rows, asked = pseudo.reshape(*halves, 1), np.stack([target, target])[..., None]
        return weighed(rows, asked, found.inside.reshape(halves), found.outside.reshape(halves), found.queries)


def bounded(distance: Floats, pseudo: Floats) -> Floats:
    """Return ``distance`` with ±inf (no other side found) as the extreme of what pseudo-targets have."""
    finite = pseudo[np.isfinite(pseudo)]
    low, high = (finite.min(), finite.max()) if finite.size else (-1.0, 1.0)
    return np.clip(distance, low, high)
