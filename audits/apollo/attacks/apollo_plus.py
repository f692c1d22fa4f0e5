"""Apollo-plus: where the target stands between shadows with and without the candidate, by bisection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.calibration import weighed
from audits.apollo.evidence.parts import Evidence
from audits.apollo.evidence.plus import Standings
from audits.queries.access import Access


@ATTACKS.register("apollo_plus")
@dataclass(frozen=True)
class ApolloPlus(Attack):
    """A label-only search of our own within Apollo's queries: adaptive labels on ladders of several committees.

    Score: the target's mean standing over the committees' ladders, weighed as in the calibrated rule against the
    point's own mean standings over pseudo-targets with and without it.

    Source: ours; ladders run across the decision boundaries of committees of shadows, and each is searched by
    bisection.

    Deviations: none, since there is no paper.

    Cost: up to ``audit.queries`` labels a point (by default those of ``apollo``), each depending on those before;
    ``split.shadows`` models trained and unlearned for each set of targets.

    Not for: recorded answers, since it asks about inputs of its own making, one after the other.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("plus",)

    def find(self, evidence: Evidence) -> Finding:
        found = evidence.part("plus")
        assert isinstance(found, Standings), "this kind gathers standings"
        rows, asked = (answers.mean(-1, dtype=np.float64)[..., None] for answers in (found.pseudo, found.target))
        return weighed(rows, asked, found.inside, found.outside, found.queries)
