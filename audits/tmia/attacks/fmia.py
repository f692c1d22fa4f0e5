"""FMIA: one attack network for each class, on the full posterior (Zou et al., arXiv 2009.04872)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.errors import BadInput
from audits.queries.access import Access
from audits.seeds import Purpose, derive_seed
from audits.tmia.answers import Posteriors
from audits.tmia.attacks.base import ATTACKS, JudgeSettings
from audits.tmia.attacks.network import Judge, Network
from audits.tmia.attacks.shadows import (
    SHADOWS,
    Asked,
    PosteriorAttack,
    ShadowRows,
    Verdict,
    balanced_shadows,
    everyone,
)

FEWEST = 10


@dataclass(frozen=True)
class Fmia:
    """ "Privacy Analysis of Deep Learning in the Wild: Membership Inference Attacks against Transfer Learning".

    Shadow models imitate the target; for each class a network of 64 ReLU units and a softmax of 2 learns from the
    posteriors of the shadows' members and non-members of that class. Classes with fewer than ``FEWEST`` rows, or with
    rows of one kind alone, are judged by one network trained on all rows.
    """

    access: ClassVar[Access] = "posteriors"

    network: Network = field(default_factory=Network)

    def judge(
        self, shadows: Sequence[ShadowRows], posterior: NDArray[np.floating], label: ArrayLike, seed: int
    ) -> Verdict:
        """Return the verdict on targets' ``posterior`` (T, K, classes); the score is the log-odds.

        ``label`` (K,) or (T, K): whose network judges, by the rule that made the labels of the shadows' rows. Networks
        of classes that nobody asks about are not trained.
        """
        if len(shadows) == 0:
            raise BadInput("no shadow is given; the attack networks need 1 or more")
        classes = {part.shape[-1] for part in (posterior, *(rows.posterior for rows in shadows))}
        if len(classes) > 1:
            raise BadInput(
                f"models of {sorted(classes)} classes are mixed; FMIA needs shadows with the target's classes"
            )
        rows = np.concatenate([shadow.posterior for shadow in shadows]).astype(np.float64)
        member = np.concatenate([shadow.member for shadow in shadows])
        known = np.concatenate([shadow.label for shadow in shadows])
        asked = np.broadcast_to(np.asarray(label), posterior.shape[:-1])
        score = np.empty(asked.shape)
        pooled: Judge | None = None
        for one in np.unique(asked):
            own = known == one
            if own.sum() >= FEWEST and len(np.unique(member[own])) == 2:
                judge = self.network.fitted(rows[own], member[own], derive_seed(seed, Purpose.FMIA, int(one)))
            else:
                pooled = pooled or self.network.fitted(rows, member, derive_seed(seed, Purpose.FMIA, "pooled"))
                judge = pooled
            score[asked == one] = judge(posterior[asked == one].astype(np.float64))
        return Verdict(score > 0, score, everyone(score))


@ATTACKS.register("fmia")
@dataclass(frozen=True)
class FmiaAttack(PosteriorAttack):
    """FMIA (Zou et al., arXiv 2009.04872): the shadows are the first ``SHADOWS`` reference models; classes are y*.

    Score: the probability of "member" by a network of 64 ReLU units and a softmax of 2 on the whole posterior, one
    network a class.

    Source: Zou et al., "Privacy Analysis of Deep Learning in the Wild", arXiv 2009.04872.

    Deviations: classes with few rows, or with rows of one kind alone, are judged by one network trained on all rows
    (``Fmia``).

    Cost: posteriors at the candidates; one fit of under a second; ``split.reference_models`` models, which serve all
    targets and candidates.

    Not for: normally fitted models, on which learned attacks are near chance (TMIA's paper, Fig. 1), and a promised
    rate: it makes none.
    """

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """Return the verdict on what ``asked`` models answer; the score is the log-odds."""
        return Fmia().judge(balanced_shadows(seen, SHADOWS, seed), asked.posterior, asked.star, seed)
