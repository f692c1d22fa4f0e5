"""Ridge gradient uniqueness: GNQ_j(λ) = g_jᵀ (Σ_{k≠j} g_k g_kᵀ + λI)⁻¹ g_j for every j from one factorisation of K.

With A = K + λI, GNQ_j = 1/(λ·[A⁻¹]_jj) − 1 for any N and P (matrix inversion lemma). Taken literally the difference
loses every digit of small values. Both forms here sum terms of one sign instead: with A = L Lᵀ and W = L⁻¹, ρ_j =
A_jj·[A⁻¹]_jj − 1 = Σ_{k<j} L_jk²/L_jj² + A_jj·Σ_{i>j} W_ij², and GNQ_j = (K_jj/λ − ρ_j)/(1 + ρ_j), so that a point
whose gradient is tiny keeps its relative precision; with eigenvectors, Σ V²w/(w + λ) over Σ V²λ/(w + λ).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from audits.errors import BadInput
from audits.gradients.gram_checks import Gram, check_ridge, checked_gram, not_positive, rank_tolerance

EPS = torch.finfo(torch.float64).eps

ERROR = 1e-4
"""Largest relative error by rounding, a pessimistic estimate, that a value may have."""

NEGATIVE = 1e-6
"""A negative eigenvalue of K of this share of λ moves a value by as much and is let pass."""

NARROWEST, COLUMNS = 64, 128
"""Columns of L⁻¹ that are held at once: a quarter of them, within these bounds. Narrow strips leave out more zeros."""


def ridge_uniqueness(K: torch.Tensor, ridge: float, relative: bool) -> torch.Tensor:
    """Return GNQ (N,) float64 on the device of ``K``, a matrix that ``checked_gram`` has passed.

    One Cholesky factorisation and N columns of its inverse, N³/3 operations each, and, unless these show it, N³/3 to
    see that K has no negative eigenvalues. Holds one more N × N array beside K (3.2 GB for N = 20 000) and a strip of
    128 columns.
    Raises BadInput for a ridge that is not positive, one that rounding of K hides, and a K with negative eigenvalues.
    """
    check_ridge(ridge)
    mean = _mean_square(K)
    if not mean > 0:
        return torch.zeros(len(K), dtype=K.dtype, device=K.device)
    scale = _scale(mean)
    penalty = ridge * (mean / scale) if relative else ridge / scale
    if not penalty < float("inf"):  # so large beside K that the others do not count
        return K.diagonal() / (mean if relative else 1.0) / ridge
    square = K.diagonal() / scale
    worst = len(K) * (float(square.max()) / penalty + 1)
    factor = _factor(K, scale, torch.full_like(square, penalty))
    if factor is None:
        _check_positive(K, scale, square, penalty)
        raise _hidden(worst, worst, ridge, relative)
    pivot = factor.diagonal().square()
    # The diagonal is put to zero while the rest of a row is summed: a sum minus L_jj² would lose the small rows.
    explained = _off_diagonal_row_squares(factor) / pivot
    rho = explained + (square + penalty) * _below_diagonal_column_squares(factor)
    del factor
    # No eigenvalue of A⁻¹ exceeds its trace. Where that is below 1/λ, all of A exceed λ, and so all of K exceed 0.
    if not float(((1 + rho) / (square + penalty)).sum()) * penalty < 1:
        _check_positive(K, scale, square, penalty)
    # The inverse of A, scaled to unit diagonal, has trace Σ(1 + ρ) and no eigenvalue above max(diag A)/λ.
    amplified = min(len(K) * float((1 + rho).sum()), worst)
    if EPS * amplified > ERROR:
        raise _hidden(amplified, worst, ridge, relative)
    return _finite((square / penalty - rho).clamp_(min=0) / (1 + rho))


def ridge_path(K: Gram, ridges: ArrayLike, relative: bool = True) -> NDArray[np.float64]:
    """Return GNQ (R, N) float64 at every one of ``ridges`` (R,), all from one eigendecomposition of K (N, N).

    ``relative``: in units of mean(diag K). Holds about four N × N float64 arrays beside K. Values are those of
    :func:`audits.uniqueness.uniqueness.uniqueness_from_gram`, which is the cheaper way to a single ridge. Raises
    BadInput as that does; very small ridges are refused sooner, since eigenvalues are known to eps times the largest.
    """
    gram = checked_gram(K)
    wanted = np.asarray(ridges, np.float64)
    if wanted.ndim != 1 or not len(wanted):
        raise BadInput(f"ridges has shape {wanted.shape}; allowed: (R,), one or more")
    for ridge in wanted:
        check_ridge(float(ridge))
    mean = _mean_square(gram)
    if not mean > 0:
        return np.zeros((len(wanted), len(gram)))
    scale = _scale(mean)
    penalties = [float(ridge) * (mean / scale) if relative else float(ridge) / scale for ridge in wanted]
    values, weights = torch.linalg.eigh(gram / scale)
    weights.square_()
    least, most = float(values[0]), float(values[-1])
    if least < -most * rank_tolerance(len(gram)):
        raise not_positive(f"its smallest eigenvalue is {least / most:.1e} of the largest")
    values.clamp_(min=0)
    found = []
    for ridge, penalty in zip(wanted, penalties, strict=True):
        shrunk = values + penalty
        amplified = len(gram) * most / float(shrunk[0])
        if EPS * amplified > ERROR:
            raise _hidden(amplified, len(gram) * most / penalty, float(ridge), relative)
        found.append(_finite((weights @ (values / shrunk)) / (weights @ (penalty / shrunk))).cpu().numpy())
    return np.stack(found)


def _mean_square(K: torch.Tensor) -> float:
    """Return mean(diag K), 0 if all gradients are; finite if these are."""
    return float((K.diagonal() / len(K)).sum())


def _scale(mean: float) -> float:
    """Return the power of two next to ``mean``: dividing by it is exact and keeps squares in range."""
    return 2.0 ** min(round(math.log2(mean)), 1023)


def _check_positive(K: torch.Tensor, scale: float, square: torch.Tensor, penalty: float) -> None:
    """Raise BadInput unless a matrix within the tolerance of K has a factor: no eigenvalue is more negative than that.

    ``square`` (N,), the diagonal of K, and ``penalty`` are in units of ``scale``.
    """
    if _factor(K, scale, square * rank_tolerance(len(K)) + NEGATIVE * penalty) is None:
        raise not_positive("it has a negative eigenvalue")


def _factor(K: torch.Tensor, scale: float, added: torch.Tensor) -> torch.Tensor | None:
    """Return the Cholesky factor (lower) of K/scale + diag(added), made in the one array it allocates; None if none."""
    # The transpose of a contiguous array has the column order of LAPACK: with it as ``out``, nothing is copied.
    matrix = torch.div(K, scale, out=torch.empty(K.shape, dtype=K.dtype, device=K.device)).mT
    matrix.diagonal().add_(added)
    info = torch.empty(0, dtype=torch.int32, device=K.device)
    factor, info = torch.linalg.cholesky_ex(matrix, out=(matrix, info))
    return None if int(info) > 0 else factor


def _off_diagonal_row_squares(factor: torch.Tensor) -> torch.Tensor:
    """Return Σ_{k<j} L_jk² (N,)."""
    kept = factor.diagonal().clone()
    factor.diagonal().zero_()
    found: torch.Tensor = torch.linalg.vector_norm(factor, dim=1).square_()
    factor.diagonal().copy_(kept)
    return found


def _below_diagonal_column_squares(factor: torch.Tensor) -> torch.Tensor:
    """Return Σ_{i>j} W_ij² (N,) of W = L⁻¹; a strip of columns needs only the rows from its first column on."""
    n = len(factor)
    found = torch.empty(n, dtype=factor.dtype, device=factor.device)
    width = min(max(n // 4, NARROWEST), COLUMNS)
    for start in range(0, n, width):
        stop = min(start + width, n)
        strip = torch.zeros(stop - start, n - start, dtype=factor.dtype, device=factor.device).mT
        strip.diagonal().fill_(1.0)
        strip = torch.linalg.solve_triangular(factor[start:, start:], strip, upper=False)
        strip.diagonal().zero_()
        found[start:stop] = torch.linalg.vector_norm(strip, dim=0).square_()
    return found


def _hidden(amplified: float, worst: float, ridge: float, relative: bool) -> BadInput:
    """Return the error for a ridge at which rounding of K decides the values.

    ``amplified`` eps is the relative error; ``worst`` eps the most it can be, which falls as the ridge grows.
    """
    unit = " times the mean of K's diagonal" if relative else ""
    return BadInput(
        f"ridge = {ridge:.3g}{unit} is hidden by rounding of K (relative error up to {EPS * amplified:.1g}); give "
        f"{2 * ridge * EPS * worst / ERROR:.1g} or more, or use mode='pinv'"
    )


def _finite(gnq: torch.Tensor) -> torch.Tensor:
    """Return ``gnq``; raises BadInput where it left the range of float64."""
    if not bool(torch.isfinite(gnq).all()):
        raise BadInput("GNQ is beyond the range of float64: the ridge is too small for K; give a larger one")
    return gnq
