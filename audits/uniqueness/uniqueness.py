"""Gradient uniqueness (GNQ) of N points from the Gram matrix of their gradients, all values from one factorisation.

Source: Abdelghafar, Aliakbarpour, Jermaine, arXiv 2510.10902: GNQ_j = g_jᵀ S⁺ g_j, S = Σ_{k≠j} g_k g_kᵀ. The closed
forms in K = G Gᵀ and the ridge are additions here; tests hold them to the definition, point by point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from audits.errors import BadInput, did_you_mean
from audits.gradients.gram_checks import Gram, checked_gram
from audits.uniqueness.pinv import independent_uniqueness, report_from_gram
from audits.uniqueness.ridge import ridge_uniqueness

MODES = ("ridge", "pinv")


def uniqueness_from_gram(
    K: Gram, mode: str = "ridge", ridge: float = 1e-3, relative: bool = True
) -> NDArray[np.float64]:
    """Return the gradient uniqueness of every point, (N,) float64 ≥ 0, from K (N, N) float64.

    K holds the inner products of the gradients, summed in float64; a NumPy array or a torch tensor, which is computed
    where it lies. It is not changed.

    ``mode``:
      ridge  S + λI in place of S, λ = ``ridge``, in units of mean(diag K) if ``relative``. Large for a gradient that
             the others do not make up. One more N × N array beside K is held (N = 20 000: 3.2 GB).
      pinv   the paper's definition; ``ridge`` is not used. With fewer points than parameters a gradient orthogonal to
             all others gets 0, the lowest value. Four to five N × N arrays are held; see
             :func:`audits.uniqueness.pinv.report_from_gram`, which shows the rank it rests on.

    A zero gradient has 0. Raises BadInput for an unknown mode, a K that is not a Gram matrix of two or more points, a
    ridge that is not positive or that rounding of K hides, and in mode pinv for a K whose rank is not certain.
    """
    if mode == "diagonal":
        raise BadInput("mode 'diagonal' needs the gradients themselves, K does not hold them; use gradient_uniqueness")
    if mode not in MODES:
        raise BadInput(f"mode is {mode!r}{did_you_mean(str(mode), MODES)}; allowed: {', '.join(MODES)}")
    gram = checked_gram(K)
    values = ridge_uniqueness(gram, ridge, relative) if mode == "ridge" else independent_uniqueness(gram)
    if values is not None:
        found: NDArray[np.float64] = values.cpu().numpy()
        return found
    report = report_from_gram(K)
    if report.doubt:
        raise BadInput(f"the rank of K is not certain: {report.doubt}; use mode='ridge', or report_from_gram to look")
    return report.gnq
