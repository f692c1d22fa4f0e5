"""Loss: members have a smaller one (Yeom et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from audits.mia.answers import Case
from audits.mia.attacks.base import MIA_ATTACKS, Attack, Finding, against_known


@MIA_ATTACKS.register("loss")
@dataclass(frozen=True)
class LossThreshold(Attack):
    """Minus the loss (Yeom et al., arXiv 1709.01604), one threshold for all points, from known non-members.

    Score: log p_y.

    Source: Yeom et al., arXiv 1709.01604.

    Deviations: the threshold keeps a promised rate; the paper's is the mean training loss.

    Cost: posteriors at the point; no shadows.

    Not for: the exposure of single points: easy points that were never seen look like members.
    """

    def find(self, case: Case) -> Finding:
        """Return log p_y (T, K)."""
        seen = case.known_posteriors(self.name)
        return against_known(seen.log_p, seen.known_log_p)
