"""Checks of a Gram matrix before gradient uniqueness is read off it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from audits.errors import BadInput

Gram = NDArray[np.float64] | torch.Tensor

SYMMETRY = 1e-10
"""The difference allowed between K_ij and K_ji, and of K_ij above ‖g_i‖·‖g_j‖, in units of ‖g_i‖·‖g_j‖."""

TILE, DEVICE_TILE = 256, 2048
"""Rows and columns that are checked at once: what a CPU's cache holds, or what keeps an accelerator busy."""

LEAST = 1e-290
"""Squared norms around this have lost digits to float64's smallest numbers, while products with others have not."""

FEWEST = 100
"""Entries of K are sums over parameters: their rounding does not shrink with N, so neither do tolerances below this."""


def checked_gram(K: Gram) -> torch.Tensor:
    """Return K (N, N) as a float64 tensor on its own device, not copied where that can be helped.

    Raises BadInput unless K is a square matrix of 2 or more rows, float64, finite, symmetric to rounding, without
    negative squares on its diagonal and without products larger than Cauchy and Schwarz allow.
    """
    if not isinstance(K, torch.Tensor | np.ndarray):
        raise BadInput(f"K is a {type(K).__name__}; allowed: a NumPy array or a torch tensor (N, N) of float64")
    if isinstance(K, torch.Tensor) and K.layout != torch.strided:
        raise BadInput(f"K has the layout {K.layout}; allowed: dense, K.to_dense()")
    shape, dtype = tuple(K.shape), str(K.dtype).removeprefix("torch.")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise BadInput(f"K has shape {shape}; allowed: (N, N), the inner products of the gradients of N points")
    if shape[0] < 2:
        raise BadInput(f"K is of {shape[0]} point(s); uniqueness is measured against others: give 2 or more")
    if dtype != "float64":
        raise BadInput(
            f"K has dtype {dtype}; allowed: float64, summed in float64 from the gradients (they may be float32); a "
            "Gram matrix summed in less precision has lost its rank"
        )
    if isinstance(K, torch.Tensor):
        found = K.detach()
    else:
        found = torch.from_numpy(K if K.flags.writeable and min(K.strides) > 0 else K.copy())  # it is never written to
    _check_values(found)
    return found


def check_ridge(ridge: object) -> None:
    """Raise BadInput unless ``ridge`` is a positive number."""
    if not isinstance(ridge, int | float | np.number) or not 0 < ridge < float("inf"):
        raise BadInput(f"ridge is {ridge!r}; allowed: a number above 0 and finite; mode pinv has none")


def rank_tolerance(n: int) -> float:
    """Return how small an eigenvalue counts as zero, in units of the largest: 10·max(N, 100)·eps."""
    return 10 * max(n, FEWEST) * torch.finfo(torch.float64).eps


def not_positive(how: str) -> BadInput:
    """Return the error for a matrix that is not of inner products; ``how`` says what showed it."""
    return BadInput(
        f"K is not a Gram matrix: {how}, beyond rounding; allowed: K = G Gᵀ summed in float64 over the same gradients "
        "for every entry"
    )


def _check_values(K: torch.Tensor) -> None:
    """Raise BadInput for values that no Gram matrix has."""
    norm = (K.diagonal() + LEAST).sqrt()
    tiles = norm.split(DEVICE_TILE if K.is_cuda else TILE)
    start = 0
    for place, rows in enumerate(tiles):
        stop = start
        for columns in tiles[place:]:
            low, stop = stop, stop + len(columns)
            upper, lower = K[start : start + len(rows), low:stop], K[low:stop, start : start + len(rows)].mT
            _check_tile(K, upper, lower, rows[:, None] * columns)
        start += len(rows)


def _check_tile(K: torch.Tensor, upper: torch.Tensor, lower: torch.Tensor, most: torch.Tensor) -> None:
    """Raise BadInput unless the two tiles (r, c) are alike and no entry is larger than ``most``, up to rounding.

    NaN and infinities, and norms that are the root of a negative square, fail both.
    """
    apart = (upper - lower).abs_()
    fits = (apart <= SYMMETRY * most) & (upper.abs() <= (1 + SYMMETRY) * most)
    if bool(fits.all()):
        return
    square = K.diagonal()
    if not bool(torch.isfinite(square).all()) or any(not bool(torch.isfinite(rows).all()) for rows in K.split(TILE)):
        raise BadInput(
            "K has NaN or infinite values; find the points whose gradients are not finite and leave them out"
        )
    if bool((square < 0).any()):
        at = int(square.argmin())
        raise not_positive(f"K[{at}, {at}] is {float(square[at]):.3g}")
    if bool((apart > SYMMETRY * most).any()):
        raise BadInput("K is not symmetric beyond rounding; allowed: K = G Gᵀ; if (K + Kᵀ)/2 is meant, give that")
    raise not_positive("an entry is larger than the product of the norms of its two points")
