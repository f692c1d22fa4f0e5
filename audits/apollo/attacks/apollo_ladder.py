"""Apollo's ladder: how far down a path of shadows that never saw the point its label holds, against other shadows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.lira import likelihood_ratio
from audits.apollo.evidence.ladder import Positions
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("apollo_ladder")
@dataclass(frozen=True)
class ApolloLadder(Attack):
    """A label-only likelihood ratio of our own: four labels, bisected on a path that offline shadows have drawn.

    Score: log N(h; μ_in, σ²_in) − log N(h; μ_out, σ²_out) of the position h on the path, that is of h in the place of
    the log-odds that U-LiRA reads off posteriors. In and out: unlearned shadows of both halves that forgot the point
    and that never saw it; variances pooled over points. The null are the shadows that never saw the point and whose
    half did not draw the path, each judged by all the others, and the target in their places (``outside``).

    Source: ours; the ratio is that of U-LiRA (arXiv 2403.01218).

    Deviations: none, since there is no paper.

    Cost: 4 labels a point, each depending on the one before; ``split.shadows`` models trained and unlearned for each
    set of targets, and ``split.offline_shadows`` that draw the paths.

    Not for: recorded answers, since it asks about inputs of its own making, one after the other.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("ladder",)

    def find(self, evidence: Evidence) -> Finding:
        found = evidence.part("ladder")
        assert isinstance(found, Positions), "this kind gathers positions"
        pseudo, target = found.pseudo.astype(np.float64), found.target.astype(np.float64)
        sides = np.stack([found.inside, found.outside])
        return likelihood_ratio(
            target,
            pseudo,
            np.stack([pseudo, pseudo]),
            sides,
            found.queries,
            null_of=found.outside & found.apart[:, None],
        )
