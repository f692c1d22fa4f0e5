"""RMIA offline: the same by shadows that never saw the point (Zarifzadeh et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Bools, Floats
from audits.mia.answers import Posteriors
from audits.mia.attacks.base import MIA_ATTACKS
from audits.mia.attacks.rmia import RMIA
from audits.signals.rmia import log_mean

SHARE = 0.3
"""a of the paper's p(x) = ½((1 + a)·p_out(x) + 1 − a): what its experiments on CIFAR-10 took."""


@MIA_ATTACKS.register("rmia_offline")
@dataclass(frozen=True)
class RMIAOffline(RMIA):
    """RMIA offline (arXiv 2312.03262): p(x) from shadows outside alone, moved towards 1 as shadows inside would do.

    Score: as ``rmia``, with p(x) a mixture of the mean over shadows outside and 1.

    Deviations: those of ``rmia``, and a is fixed, where the paper tunes it on shadows.

    Cost: posteriors at the point and at test points; ``split.shadows`` models a pool, trained once for all of its
    targets, of which it reads the half that never saw the point.

    Not for: runs with shadows on both sides, as all of this audit have: ``rmia`` uses them. It shows what the offline
    form would reach.
    """

    def expected(self, shadows: Posteriors, half: Bools) -> Floats:
        """Return log p(x) (K,) by the shadows outside."""
        found: Floats = np.log(0.5 * ((1 + SHARE) * np.exp(log_mean(shadows.log_p, ~half)) + 1 - SHARE))
        return found
