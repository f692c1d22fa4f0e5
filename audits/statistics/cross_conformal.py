"""Cross-conformal p-values: several fits, each with a null of its own, counted together.

A score that a fit to the shadows gives is comparable only with scores that this very fit gives to models which it has
not met. So some shadows are left out in turn: the fit to the rest scores the target and, as its null, the points that
the left-out models never saw. Target and left-out models are exchangeable given the fit, whatever it is. p is the share
of all comparisons that the target loses (Vovk, Annals of Mathematics and Artificial Intelligence 74, 2015):

p = (1 + Σ_k #{null_k ≥ s_k}) / (1 + Σ_k N_k).

One part (k = 1) gives the conformal p-value. Of several, whose fits share most of their shadows, P(p ≤ a) ≤ 2a is what
can be proved for one score against one from each part (Barber et al., Annals of Statistics 49, 2021); found is less
than a, and the less the more the fits differ, for a mean of p-values is seldom as small as each of them. So p-values,
which must be valid, are these, and decisions at a promised rate are made otherwise (``audits.mia.attacks.base``). Both
are simulated in ``tests/audits/mia/test_exchangeability.py``. Points of one model are no independent draws: where
models differ by more than points do, rates vary with the few models of the null, and a control on null models shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audits.arrays import Floats


def cross_p_values(scores: Sequence[Floats], nulls: Sequence[Floats]) -> Floats:
    """Return p of every score (...): (1 + Σ #{null ≥ score}) / (1 + Σ N) over the parts.

    ``scores``: an array (...) a part; ``nulls``: the null scores (N,) of each. Equal scores count as null.
    """
    as_large = np.zeros(scores[0].shape, np.int64)
    for score, null in zip(scores, nulls, strict=True):
        as_large = as_large + len(null) - np.searchsorted(np.sort(null), score, side="left")
    return np.asarray((1 + as_large) / (1 + sum(len(null) for null in nulls)))
