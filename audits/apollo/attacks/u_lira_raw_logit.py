"""U-LiRA as Apollo's public reference does it: on the raw logit of the true class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.lira import likelihood_ratio
from audits.apollo.evidence.logits import Logits
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("u_lira_raw_logit")
@dataclass(frozen=True)
class ULiRARawLogit(Attack):
    """Parity with the U-LiRA beside Apollo (arXiv 2506.09923; LiouTang/Unlearn-Apollo-Attack, ``attacks/ULiRA.py``).

    Score: log N(z_y; μ_in, σ²_in) − log N(z_y; μ_out, σ²_out) of the raw logit z_y, normal distributions fitted per
    point; in: unlearned shadows that had the point; out: *original* shadows that never had it, as the reference names
    them (on its first run they have been unlearned in place).

    Source: the public code beside arXiv 2506.09923, ``attacks/ULiRA.py``.

    Deviations: the log of the reference's ratio, so nothing divides by zero; the null judges unlearned shadows that
    never saw a point, each by all the others, where the reference picks thresholds on the judged points.

    Cost: logits at the point; ``split.shadows`` models trained and unlearned for each set of targets.

    Not for: anything but parity: a logit carries a shift that the softmax removes, which weakens the attack.
    """

    access: ClassVar[Access] = "logits"
    reads: ClassVar[tuple[str, ...]] = ("logits",)

    def find(self, evidence: Evidence) -> Finding:
        seen = evidence.part("logits")
        assert isinstance(seen, Logits), "the evidence of kind logits is logits"
        shadow, target = seen.shadow.astype(np.float64), seen.target.astype(np.float64)
        values = np.stack([shadow, seen.original.astype(np.float64)])
        sides = np.stack([seen.inside, seen.outside])
        return likelihood_ratio(target, shadow, values, sides, seen.queries, pooled=False)
