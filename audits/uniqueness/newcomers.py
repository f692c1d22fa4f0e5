"""Gradient uniqueness of points that a model did not train on, beside the points that it did."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from audits.errors import BadInput
from audits.gradients.gram_checks import Gram, check_ridge, checked_gram, not_positive
from audits.uniqueness.ridge import EPS, ERROR


def newcomers_uniqueness(K: Gram, known: int, ridge: float = 1e-3, relative: bool = True) -> NDArray[np.float64]:
    """Return g_jᵀ (S + λI)⁻¹ g_j (N − ``known``,) float64 ≥ 0 of newcomers j, S over the first ``known`` points of K.

    ``K`` (N, N): the Gram matrix of the gradients of the known points and, after them, of the newcomers, which do not
    count for each other. λ is ``ridge``, in units of the known points' mean ‖g‖² if ``relative``. By the matrix
    inversion lemma the value is (K_jj − k_jᵀ (K_S + λI)⁻¹ k_j)/λ, K_S and k_j of the known points. Raises BadInput for
    a K that is no Gram matrix, without known points or newcomers, for a ridge that is not positive or that rounding of
    K hides, and for values beyond float64.

    Not of arXiv 2510.10902, which measures training points; it is what training on j as well would disclose first.
    """
    K = checked_gram(K)
    if not 0 < known < len(K):
        raise BadInput(f"known is {known} of {len(K)} points; allowed: 1 to {len(K) - 1}")
    check_ridge(ridge)
    own, across = K[:known, :known], K[:known, known:]
    unit = float(own.diagonal().mean()) if relative else 1.0
    if not unit > 0:
        raise BadInput("the known points' gradients are all zero, so that a relative ridge is zero; use relative=False")
    _check_rounding(own, ridge, unit, relative)
    factor, info = torch.linalg.cholesky_ex(own + ridge * unit * torch.eye(known, dtype=K.dtype, device=K.device))
    if int(info) > 0:
        raise not_positive("it has a negative eigenvalue")
    explained = torch.linalg.solve_triangular(factor, across, upper=False).square().sum(0)
    found = (K.diagonal()[known:] - explained).clamp_(min=0) / (ridge * unit)
    if not bool(torch.isfinite(found).all()):
        raise BadInput("GNQ is beyond the range of float64: the ridge is too small for K; give a larger one")
    values: NDArray[np.float64] = found.cpu().numpy()
    return values


def _check_rounding(own: torch.Tensor, ridge: float, unit: float, relative: bool) -> None:
    """Raise BadInput where rounding of K, ``own`` (n, n) of the known points, moves values by more than ``ERROR``.

    ``ridge`` is in units of ``unit``. A value's relative error is at most about eps·n·(max(diag K) + λ)/λ.
    """
    scale = EPS * len(own) * (float(own.diagonal().max()) / unit + ridge)
    if scale / ridge > ERROR:
        words = " times the mean of K's diagonal over the known points" if relative else ""
        raise BadInput(
            f"ridge = {ridge:.3g}{words} is hidden by rounding of K (relative error up to {scale / ridge:.1g}); give "
            f"{2 * scale / ERROR:.1g} or more"
        )
