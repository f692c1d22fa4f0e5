"""RMIA: is the candidate likelier under the target than population points are (Zarifzadeh et al. 2024)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.outside import in_places, judged_outside, stand_ins
from audits.apollo.evidence.parts import Evidence
from audits.apollo.evidence.population import Population
from audits.arrays import Bools, Floats
from audits.queries.access import Access
from audits.signals.confidence import of_true_class
from audits.signals.rmia import dominance, evidence_of, log_mean


@ATTACKS.register("rmia")
@dataclass(frozen=True)
class RMIA(Attack):
    """RMIA online (Zarifzadeh et al., arXiv 2312.03262) with unlearned shadows as references.

    Score: the mean over population points z of LR/(LR + γ), γ = 1, LR(x, z) = (p(x|θ)/p(x)) / (p(z|θ)/p(z)), p being
    the probability of the true class. No model trained on z. p(x): half the mean over references inside, half over
    those outside; p(z): the mean over all of them.

    Source: Zarifzadeh et al., arXiv 2312.03262.

    Deviations: this is the soft form of the paper's share of z with LR ≥ γ, of which Z points give Z + 1 values only;
    for one target it orders points alike. No augmented queries. The null judges each unlearned shadow that never saw a
    point by all the others, and the target in its place (``outside``).

    Cost: posteriors at the point and a share of those at ``audit.population`` other points; ``split.shadows`` models
    trained and unlearned for each set of targets.

    Not for: labels alone, and data without points to spare: the population must be nobody's training data.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[str, ...]] = ("posteriors", "population")

    def find(self, evidence: Evidence) -> Finding:
        seen, beside = evidence.posterior(), evidence.part("population")
        assert isinstance(beside, Population), "the evidence of kind population is of the population"
        shadow, target = (of_true_class(answers, seen.labels) for answers in (seen.shadow, seen.target))
        points = beside.shadow.astype(np.float64)
        sides = np.stack([seen.inside, seen.outside])
        everywhere = np.concatenate([shadow, points], axis=1)

        def score(asked: Floats, kept: Bools) -> Floats:
            candidates, population = asked[: len(target)], asked[len(target) :]
            own = candidates - evidence_of(shadow[kept], sides[:, kept])
            return dominance(own, population - log_mean(points[kept], np.ones_like(points[kept], dtype=bool)))

        found = np.empty(stand_ins(seen.outside).shape)
        for place, index in enumerate(beside.index):
            rows = beside.owner == index
            asked = np.concatenate([target, beside.target[place].astype(np.float64)])
            found[:, rows] = in_places(asked, seen.outside, score)[:, rows]
        null = judged_outside(everywhere, seen.outside, score)
        return Finding.of_parts([(found, null)], seen.queries + beside.queries)
