"""Pareto fronts: settings that no other beats in a risk and in a worth at once, and how sure that is.

A setting beats another if its risk is no larger, its worth no smaller, and one of the two better. Risks below a
``floor`` count as the floor: an AUC of .47 protects no better than one of ½.

Which settings are on the front is found from the same targets as their numbers, so that settings on it look a little
better than they are. How sure the membership is says a bootstrap over targets: the share of draws in which a setting is
on the front of the means. A share is no probability of being on the true front, where settings that are nearly
equal cannot be told apart; it says how often the choice would be repeated on such targets.
"""

from __future__ import annotations

import numpy as np

from audits.arrays import Bools, Floats
from audits.errors import BadInput


def on_front(risk: Floats, worth: Floats, *, floor: float = -np.inf) -> Bools:
    """Return which settings (…, k) are beaten by no other; equal ones are on the front together."""
    risk, worth = np.maximum(risk, floor), np.asarray(worth, dtype=np.float64)
    beaten = np.zeros(risk.shape, dtype=bool)
    for rival in range(risk.shape[-1]):
        less, more = risk[..., rival : rival + 1], worth[..., rival : rival + 1]
        beaten |= (less <= risk) & (more >= worth) & ((less < risk) | (more > worth))
    return ~beaten


def front_shares(risk: Floats, worth: Floats, *, draws: int, seed: int, floor: float = -np.inf) -> Floats:
    """Return the share of draws (k,) in which a setting is on the front of the means over targets.

    ``risk`` and ``worth`` (targets, k): row by row the same target under every setting; whole rows are drawn, with
    replacement, so that what settings have in common at a target stays. Raises BadInput for less than two targets.
    """
    targets = len(risk)
    if targets < 2:
        raise BadInput("how sure a front is takes two targets or more")
    chosen = np.random.default_rng(seed).integers(0, targets, (draws, targets))
    counts = np.stack([(chosen == target).sum(axis=1) for target in range(targets)], axis=1) / targets
    return np.asarray(on_front(counts @ risk, counts @ worth, floor=floor).mean(axis=0), dtype=np.float64)
