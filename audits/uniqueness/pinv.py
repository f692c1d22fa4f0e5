"""Gradient uniqueness by the paper's definition, GNQ_j = g_jᵀ S⁺ g_j, for every j from one eigendecomposition.

Let c_j be the least-norm coefficients of g_j's projection on the other gradients; then GNQ_j = ‖c_j‖². Three kinds of
rows, whatever N, P and rank are:

- spanned: g_j is made up of the others. c_j = −Π_ij/Π_jj (i ≠ j), Π the projector on the null space of K.
- independent: it is not. c_j = −(K⁺)_ij/(K⁺)_jj (i ≠ j), and 1/(K⁺)_jj is the squared residual.
- zero: GNQ is 0.

The sum runs over i ≠ j; the whole sum minus 1, or h/(1 − h) with the leverage h, loses small or large values.

Norms of gradients differ by many powers of ten in a trained model, and eigenvalues are known to eps times the largest.
So K = D C D is decomposed as C, of unit diagonal: rank, null space and kind of row are those of C, and D comes in
afterwards, null(K) = D⁻¹ null(C), and K⁺e_j = (I − Π) D⁻¹ C⁺ e_j / D_jj for an independent row.

Where all rows are surely independent, K⁺ = K⁻¹, and a Cholesky factor of C gives the same values in a fraction of the
time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.gradients.gram_checks import Gram, checked_gram, not_positive, rank_tolerance

EPS = torch.finfo(torch.float64).eps


MARGIN = 10.0
"""An eigenvalue within this factor of the cut, on either side, leaves the rank in doubt."""

ROW_MARGIN = 30.0
"""A row within this factor of the border between spanned and independent leaves its kind in doubt."""

CLAIM = 0.01
"""A spanned row is sure if the others make it up but for this share of its squared norm; see ``_unexplained``."""

ROWS = 1024
"""Rows of Π or K⁺ that are held at once."""

LOST = 1e-9
"""Values are read off a factor of C where rounding takes less of C⁻¹: eps times a bound of C's condition number."""


@dataclass(frozen=True)
class RankReport:
    """Gradient uniqueness of N points and the rank that it rests on.

    ``gnq`` (N,) float64; ``residual`` (N,) float64: squared distance of each gradient from the span of the others, 0 if
    spanned; ``independent``, ``zero`` (N,) bool: the kind of row, spanned where neither. ``rank``; ``cut``: eigenvalues
    below it count as zero; ``smallest_kept`` and ``largest_dropped`` (0.0 if none is): the eigenvalues next to it, all
    of K scaled to unit diagonal. ``doubt``: why the rank is not certain, or "".
    """

    gnq: Floats
    residual: Floats
    independent: Bools
    zero: Bools
    rank: int
    cut: float
    smallest_kept: float
    largest_dropped: float
    doubt: str

    def text(self) -> str:
        """Return the report as one line."""
        independent, zero = int(self.independent.sum()), int(self.zero.sum())
        return (
            f"{len(self.gnq)} points, rank {self.rank}: {len(self.gnq) - independent - zero} spanned by the others, "
            f"{independent} independent, {zero} zero; smallest eigenvalue kept {self.smallest_kept:.1e}, largest "
            f"dropped {self.largest_dropped:.1e}, cut {self.cut:.1e}{'; in doubt: ' if self.doubt else ''}{self.doubt}"
        )


def report_from_gram(K: Gram) -> RankReport:
    """Return gradient uniqueness in mode pinv with its rank report, from K (N, N) float64, NumPy or torch.

    Source: arXiv 2510.10902, definition; the closed forms are this module's. Eigenvalues under 10·max(N, 100)·eps times
    the largest count as zero. Holds four to five N × N float64 arrays beside K. Raises BadInput for a K that is not a
    Gram matrix of two or more points; doubt about the rank is told in the report and not raised.
    """
    gram = checked_gram(K)
    norm = gram.diagonal().sqrt()
    live = norm > 0
    if not bool(live.any()):
        nothing, every = np.zeros(len(gram)), np.ones(len(gram), bool)
        return RankReport(nothing, nothing, ~every, every, 0, 0.0, 0.0, 0.0, "")
    scaled = (gram if bool(live.all()) else gram[live][:, live]) / norm[live] / norm[live, None]
    values, vectors = torch.linalg.eigh(scaled)
    del scaled
    cut = rank_tolerance(len(values)) * float(values[-1])
    if float(values[0]) < -cut:
        raise not_positive(f"its smallest eigenvalue, scaled to unit diagonal, is {float(values[0]):.1e}")
    dropped = int((values <= cut).sum())
    smallest, largest = float(values[dropped]), max(float(values[dropped - 1]), 0.0) if dropped else 0.0
    # An eigenvector's entries are known to about (eps·largest eigenvalue)/gap; a null entry below that may be none.
    border = cut / smallest
    part = torch.linalg.vector_norm(vectors[:, :dropped], dim=1)
    apart = part <= border
    size = norm[live] / norm.max()  # GNQ does not change with the unit of the gradients
    gnq, residual = _coefficients(values, vectors, dropped, size, apart)
    finite(_on_all(gnq, live), gram)
    return RankReport(
        gnq=_on_all(gnq, live).cpu().numpy(),
        residual=_on_all(residual * norm.max() ** 2, live).cpu().numpy(),
        independent=_on_all(apart, live).cpu().numpy(),
        zero=(~live).cpu().numpy(),
        rank=len(values) - dropped,
        cut=cut,
        smallest_kept=smallest,
        largest_dropped=largest,
        doubt=_doubt(cut, smallest, largest, part, border, _unexplained(values, vectors, dropped, part)),
    )


def independent_uniqueness(K: torch.Tensor) -> torch.Tensor | None:
    """Return GNQ (N,) by the definition where the rows of ``K``, passed by ``checked_gram``, are surely independent.

    None where they may not be: a zero row, no Cholesky factor, or a condition number that ‖C‖·‖C⁻¹‖ (Frobenius) does
    not bound well below what would leave the rank in doubt. Holds two to three N × N float64 arrays beside K.
    """
    norm = K.diagonal().sqrt()
    if not bool((norm > 0).all()):
        return None
    scaled = (K / norm).div_(norm[:, None])
    size = float(torch.linalg.vector_norm(scaled))
    factor, info = torch.linalg.cholesky_ex(scaled)
    if int(info) > 0:
        return None
    inverse = torch.cholesky_inverse(factor, out=scaled)
    if not EPS * size * float(torch.linalg.vector_norm(inverse)) < LOST:
        return None
    # c_j = −(K⁻¹)_ij/(K⁻¹)_jj, and (K⁻¹)_ij = (C⁻¹)_ij/(D_i·D_j); both are symmetric, so that rows are columns.
    norm /= norm.max()  # GNQ does not change with the unit of the gradients
    weight = norm / inverse.diagonal()
    inverse.diagonal().zero_()
    return finite((torch.linalg.vector_norm(inverse.div_(norm), dim=1) * weight).square_(), K)


def finite(gnq: torch.Tensor, K: torch.Tensor) -> torch.Tensor:
    """Return ``gnq`` (N,) of the rows of ``K``; BadInput naming the first point whose value is not finite."""
    bad = torch.nonzero(~torch.isfinite(gnq)).flatten().tolist()
    if bad:
        square = K.diagonal()
        raise BadInput(
            f"GNQ of point {bad[0]} by mode pinv is beyond the range of float64 ({len(bad)} of {len(gnq)} are): "
            f"squared norms of gradients go from {float(square[square > 0].min()):.1e} to {float(square.max()):.1e}; "
            "use mode='ridge', or leave out points that are fitted so far"
        )
    return gnq


def _coefficients(
    values: torch.Tensor, vectors: torch.Tensor, dropped: int, size: torch.Tensor, apart: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return GNQ and squared residual (n,) each, rows in the unit of ``size``, strip by strip of Π or K⁺."""
    null = _null_basis(vectors[:, :dropped], size)
    kept = vectors[:, dropped:]
    weighted = kept / values[dropped:]
    gnq, residual = torch.zeros_like(size), torch.zeros_like(size)
    for strip in torch.arange(len(size), device=size.device).split(ROWS):
        spanned = strip[~apart[strip]]
        gnq[spanned] = _ratio(null[spanned] @ null.mT, spanned)
        free = strip[apart[strip]]
        rows = weighted[free] @ kept.mT
        residual[free] = size[free].square() / rows.gather(1, free[:, None])[:, 0]
        rows.div_(size).div_(size[free, None])
        rows -= (rows @ null) @ null.mT
        gnq[free] = _ratio(rows, free)
    return gnq, residual


def _null_basis(null: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """Return an orthonormal basis (n, m) of D⁻¹ ``null``: rows by falling size, as Householder's QR wants them."""
    order = size.argsort()
    basis = torch.empty_like(null)
    basis[order] = torch.linalg.qr(null[order] / size[order, None]).Q
    return basis


def _ratio(rows: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Return Σ_{i≠j} rows_ji² / rows_jj² of the strip of a matrix that starts with rows ``at``; changes ``rows``."""
    own = rows.gather(1, at[:, None])
    rows.div_(own).scatter_(1, at[:, None], 0.0)
    found: torch.Tensor = torch.linalg.vector_norm(rows, dim=1).square_()
    return found


def _on_all(values: torch.Tensor, live: torch.Tensor) -> torch.Tensor:
    """Return ``values`` of the live rows among zeros for the others."""
    found = torch.zeros(len(live), dtype=values.dtype, device=values.device)
    found[live] = values
    return found


def _unexplained(values: torch.Tensor, vectors: torch.Tensor, dropped: int, part: torch.Tensor) -> torch.Tensor:
    """Return the share of each row's squared norm (n,) that its coefficients as a spanned row may leave.

    c_j = −Π_ij/Π_jj leaves (ΠCΠ)_jj/Π_jj² = Σ_m w_m V_jm²/Π_jj² over the dropped m: 0 if their eigenvalues w are. A row
    that has next to no part in them asks for large coefficients, with which a w that is only small matters; w is known
    to eps times the largest. ``part`` (n,): the root of Π_jj.
    """
    null = values[:dropped].abs().clamp(min=EPS * float(values[-1]))
    share: torch.Tensor = (vectors[:, :dropped].square() @ null) / part.pow(4)
    return share


def _doubt(
    cut: float, smallest: float, largest: float, part: torch.Tensor, border: float, unexplained: torch.Tensor
) -> str:
    """Return why the rank, or the kind of some rows, is not certain; "" if it is."""
    if smallest < MARGIN * cut or largest > cut / MARGIN:
        return f"eigenvalues {largest:.1e} and {smallest:.1e} stand on the two sides of the cut at {cut:.1e}"
    near = (part > border / ROW_MARGIN) & (part < border * ROW_MARGIN)
    unclear = int((near | ((part > border) & (unexplained > CLAIM))).sum())
    return f"{unclear} of {len(part)} gradients are nearly, not surely, made up of the others" if unclear else ""
