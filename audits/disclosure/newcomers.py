"""Gradient uniqueness of points that a model did not train on, beside the points that it did."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from audits.disclosure.gram_checks import Gram, checked_gram
from audits.errors import BadInput


def newcomers_uniqueness(K: Gram, known: int, ridge: float = 1e-3, relative: bool = True) -> NDArray[np.float64]:
    """Return g_jᵀ (S + λI)⁻¹ g_j (N − ``known``,) float64 ≥ 0 of newcomers j, S over the first ``known`` points of K.

    ``K`` (N, N): the Gram matrix of the gradients of the known points and, after them, of the newcomers, which do not
    count for each other. λ is ``ridge``, in units of the known points' mean ‖g‖² if ``relative``. By the matrix
    inversion lemma the value is (K_jj − k_jᵀ (K_S + λI)⁻¹ k_j)/λ, K_S and k_j of the known points. Raises BadInput for
    a K that is no Gram matrix, without known points or newcomers, and a ridge that is not positive.

    Not of arXiv 2510.10902, which measures training points; it is what training on j as well would disclose first.
    """
    K = checked_gram(K)
    if not 0 < known < len(K):
        raise BadInput(f"known is {known} of {len(K)} points; allowed: 1 to {len(K) - 1}")
    if not ridge > 0:
        raise BadInput(f"ridge is {ridge}; it must be above 0")
    own, across = K[:known, :known], K[:known, known:]
    penalty = ridge * float(own.diagonal().mean()) if relative else ridge
    if not penalty > 0:
        raise BadInput("the known points' gradients are all zero, so that a relative ridge is zero; use relative=False")
    factor = torch.linalg.cholesky(own + penalty * torch.eye(known, dtype=K.dtype, device=K.device))
    explained = torch.linalg.solve_triangular(factor, across, upper=False).square().sum(0)
    found: NDArray[np.float64] = ((K.diagonal()[known:] - explained).clamp_(min=0) / penalty).cpu().numpy()
    return found
