"""U-MIA trained on the truth about the other candidates: an oracle's bound, not an attack anybody could run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.calibration import FOLDS
from audits.apollo.attacks.u_mia import fit
from audits.apollo.evidence.parts import Evidence
from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.queries.access import Access


@ATTACKS.register("u_mia_oracle")
@dataclass(frozen=True)
class UMIAOracle(Attack):
    """Parity: U-MIA as beside Apollo (arXiv 2506.09923; LiouTang/Unlearn-Apollo-Attack, ``attacks/UMIA.py``).

    Question: How well could a classifier do that is told who was forgotten, of the other candidates?

    Score: the rank of a candidate within its fold by distance from the boundary of an SVC (see ``u_mia.fit``), (0, 1)
    in steps of half a rank. The SVC learns from the target's own answers with the truth about its candidates, as the
    reference does with 200 real members of the forget set; on log-probabilities in the order of the classes, which are
    the reference's logits up to a shift of each row.

    Source: the public code beside arXiv 2506.09923, ``attacks/UMIA.py``.

    Deviations: every candidate is judged by a fit to the other folds. Distances of two folds come from two fits, each
    of which has learnt from the other's points, and pooled they put a useless classifier below .5; hence ranks. Folds
    hold equal shares of both groups: otherwise a fold rich in one group is judged by a fit poor in it, to the same
    effect. Targets that share a shadow set share the fit. Retained candidates are judged and not learnt from.

    The null are the scores of the never-seen candidates: decisions are in-sample, as the reference's are, so that at
    most one candidate fewer than promised is found by construction. Shadows cannot stand in: a fit to one model's
    answers judges other models differently (5 % promised was found as 22 %, fashion14, three targets).

    Cost: posteriors at the point, and the truth about the other candidates; no shadows.

    Not for: a claim about an attacker: nobody has that truth. ``u_mia_shadow`` does without it.
    """

    access: ClassVar[Access] = "oracle"
    reads: ClassVar[tuple[str, ...]] = ("posteriors",)

    def find(self, evidence: Evidence) -> Finding:
        """Return scores of the candidates and of the unseen ones; ``BadInput`` for evidence without the truth."""
        if evidence.truth is None:
            raise BadInput("u_mia_oracle needs the truth about the candidates; use u_mia_shadow without it")
        seen, truth = evidence.posterior(), evidence.truth
        unseen = ~truth if evidence.unseen is None else evidence.unseen
        target, score = seen.target.astype(np.float64), np.empty(len(truth))
        for own in stratified(truth):
            others = (truth | unseen) & ~own
            margin = fit(target[others], truth[others])(target[own])
            score[own] = ranked(margin, margin[(truth | unseen)[own]])
        return Finding(score, score[unseen], seen.queries)


def ranked(margins: Floats, among: Floats) -> Floats:
    """Return the place of each of ``margins`` (N,) in ``among`` (M,): the share below it, ties counted by half."""
    ordered = np.sort(among)
    below, upto = (np.searchsorted(ordered, margins, side=side) for side in ("left", "right"))
    return (below + upto) / (2 * len(ordered))


def stratified(truth: Bools) -> list[Bools]:
    """Return up to ``FOLDS`` masks (K,) that part the candidates; each holds an equal share of both groups."""
    place = np.where(truth, np.cumsum(truth), np.cumsum(~truth)) % FOLDS
    return [place == fold for fold in np.unique(place)]
