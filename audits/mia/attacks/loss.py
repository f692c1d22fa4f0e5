"""Loss: members have a smaller one (Yeom et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from audits.mia.answers import Case
from audits.mia.attacks.base import MIA_ATTACKS, Attack, Finding, against_known


@MIA_ATTACKS.register("loss")
@dataclass(frozen=True)
class LossThreshold(Attack):
    """Minus the loss (Yeom et al., arXiv 1709.01604), one threshold for all points, from known non-members."""

    def find(self, case: Case) -> Finding:
        """Return log p_y (T, K)."""
        seen = case.known_posteriors(self.name)
        return against_known(seen.log_p, seen.known_log_p)
