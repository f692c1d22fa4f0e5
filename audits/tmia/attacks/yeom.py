"""Loss threshold: a member has a smaller loss than members have on average (Yeom et al., arXiv 1709.01604)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.errors import BadInput
from audits.queries.access import Access
from audits.signals.loss import losses
from audits.tmia.answers import Posteriors
from audits.tmia.attacks.base import ATTACKS, JudgeSettings
from audits.tmia.attacks.shadows import Asked, PosteriorAttack, ShadowRows, Verdict, everyone, shadow_rows


@dataclass(frozen=True)
class Yeom:
    """Member if the loss is below the mean training loss (Yeom et al., arXiv 1709.01604).

    Deviation: the paper's attacker knows the target's mean training loss; here it is the mean over shadows' members.
    """

    access: ClassVar[Access] = "posteriors"

    def judge(self, shadows: Sequence[ShadowRows], posterior: NDArray[np.floating], label: ArrayLike) -> Verdict:
        """Return the verdict on targets' ``posterior`` (T, K, classes) for classes ``label`` (K,) or (T, K)."""
        known = [losses(rows.posterior, rows.label)[rows.member] for rows in shadows]
        if sum(len(each) for each in known) == 0:
            raise BadInput("Yeom's threshold is the mean loss of shadows' members, but no shadow row is a member")
        found = losses(posterior, label)
        return Verdict(found < np.concatenate(known).mean(), -found, everyone(found))


@ATTACKS.register("yeom")
@dataclass(frozen=True)
class YeomAttack(PosteriorAttack):
    """Loss threshold (Yeom et al., arXiv 1709.01604): the mean training loss of all reference models.

    Score: minus the loss; member if the loss is below the mean over reference models' members.

    Source: Yeom et al., arXiv 1709.01604.

    Deviations: the paper's attacker knows the target's mean training loss; here it is the mean over shadows' members.

    Cost: posteriors at the candidates; ``split.reference_models`` models, which serve all targets and candidates.

    Not for: a promised rate: it makes none; hard points, which have a large loss whether or not they were trained on.
    """

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """Return the verdict on what ``asked`` models answer; the score is minus the loss."""
        return Yeom().judge(shadow_rows(seen, seen.shadow_member), asked.posterior, asked.star)
