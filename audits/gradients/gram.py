"""The Gram matrix K = G Gᵀ of the gradients of N points, without the N × P gradients G.

Formulas per layer as in Goodfellow, arXiv 1510.01799 (linear layers) and Rochette et al., arXiv 1912.06015
(convolutions), here for pairs of points; a sequence has the kernel Σ_t,s (a_t·a'_s)(b_t·b'_s).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from audits.errors import BadInput
from audits.gradients.engine import Held, Piece, held, parts, passed, pieces
from audits.gradients.heard import counted
from audits.gradients.products import add_products, squares
from audits.gradients.residuals import Loss
from audits.gradients.survey import Survey, surveyed
from audits.gradients.validate import check_auditable

CHUNK = 32
MEMORY = 2**30


def gram(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    loss: str | Loss = "cross_entropy",
    chunk: int = CHUNK,
    parameter_chunk: int | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    memory: int = MEMORY,
) -> torch.Tensor:
    """Return K (N, N) float64: the inner products of the gradients of the points' losses, over all parameters.

    ``x`` (N, ...) and ``y`` (N,) as the model was trained on them: floats, uint8 images, or integer tokens. Parameters
    without requires_grad do not count. The model must be auditable (``validate``); it is copied, never changed.

    ``loss``: "cross_entropy", or a function of float64 logits (n, classes) and labels that gives n losses. It sees
    labels as they are given, integers as int64; cross entropy takes integers only.
    ``dtype``: of the passes through the model; products are summed in float64 always.
    ``device``: where K is computed and left; default, where the model stands.
    ``chunk``: points in one pass. ``memory``: bytes of what is held of the gradients. Beside it stand K (8 N² bytes), a
    copy of the model, at first the gradients of two points, later one pass, and temporary arrays of some 100 MB.
    ``parameter_chunk``: numbers held of a point at once, by default as many as ``memory`` has room for with all N.
    What does not fit is made by further passes, so less memory means more time; one layer that cannot be divided may
    exceed it, for two points. None of these changes K but for rounding. In the pass that first reads a point, a
    weighted sum of what the layers show is compared with autograd's, at the price of two gradients of a sum.

    Raises BadInput for models and points that have no gradients of their own, and for gradients that are not finite.
    """
    limit = checked_limit(len(x), chunk, parameter_chunk, memory, dtype)
    with surveyed(model, x, y, loss=loss, dtype=dtype, device=device, chunk=chunk) as survey:
        K = torch.zeros(len(x), len(x), dtype=torch.float64, device=survey.device)
        add_all(survey, x, y, limit, chunk, memory, K)
    check_finite(K.diagonal())
    return mirrored(K)


def gram_rows(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    low: int,
    high: int,
    *,
    loss: str | Loss = "cross_entropy",
    chunk: int = CHUNK,
    parameter_chunk: int | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    memory: int = MEMORY,
) -> torch.Tensor:
    """Return rows ``low`` to ``high`` of the upper half of K, (high − low, N − low) float64, from column ``low`` on.

    What ``gram`` would find, for work that is shared out among machines: ``row_shards`` cuts N rows into equal parts of
    it, ``from_rows`` joins them. What stands below the diagonal of K is of no meaning. Points before ``low`` are not
    passed through the model. The other arguments, and the errors, are those of ``gram``; BadInput for rows that K does
    not have.
    """
    if not 0 <= low < high <= len(x):
        raise BadInput(f"rows {low} to {high} of K; allowed: 0 ≤ low < high ≤ {len(x)}, the number of points")
    limit = checked_limit(len(x) - low, chunk, parameter_chunk, memory, dtype)
    with surveyed(model, x, y, loss=loss, dtype=dtype, device=device, chunk=chunk) as survey:
        K = torch.zeros(high - low, len(x) - low, dtype=torch.float64, device=survey.device)
        add_all(survey, x[low:], y[low:], limit, chunk, memory, K, low)
    check_finite(K.diagonal(), low)
    return K


def row_shards(points: int, shards: int) -> list[tuple[int, int]]:
    """Return (low, high) of the rows of K that ``shards`` (at most ``points``) parts have, each of 1 row or more.

    Cut so that each part has as many pairs of the upper half as can be; early rows are longer, so early parts have
    fewer.
    """
    ends = [0]
    for shard in range(1, shards + 1):
        even = round(points * (1 - (1 - shard / shards) ** 0.5))  # r rows leave out (N − r)²/2 of N²/2 pairs
        ends.append(min(max(even, ends[-1] + 1), points - (shards - shard)))
    return list(pairwise(ends))


def from_rows(rows: Iterable[torch.Tensor], points: int) -> torch.Tensor:
    """Return K (N, N) from what ``gram_rows`` gave of all its rows, in order, N = ``points``."""
    K: torch.Tensor | None = None
    low = 0
    for part in rows:
        K = part.new_zeros(points, points) if K is None else K
        K[low : low + len(part), low:] = part
        low += len(part)
    if K is None or low != points:
        raise BadInput(f"parts of K with {low} rows in all; give all {points}")
    return mirrored(K)


def add_all(
    survey: Survey,
    x: torch.Tensor,
    y: torch.Tensor,
    limit: int,
    chunk: int,
    memory: int,
    K: torch.Tensor,
    first_point: int = 0,
) -> None:
    """Add the inner products of the first points of ``x`` with it, over all parameters, to the upper half of ``K``.

    ``first_point``: the number of the first one, for messages.
    """
    todo = list(parts(pieces(survey, "pairs", limit), limit))
    blocks = [block_of(survey, part, len(x), memory) for part in todo]
    with counted("Gram matrix", sum(points_read(len(K), len(x), block) for block in blocks)):
        for part, block in zip(todo, blocks, strict=True):
            add_part(survey, part, x, y, min(chunk, block), block, K, first_point)


def block_of(survey: Survey, part: list[Piece], points: int, memory: int) -> int:
    """Return how many of the ``points`` are held at once of ``part``: all, or what leaves room for as many others."""
    numbers = sum(piece.size for piece in part) * survey.dtype.itemsize
    return points if numbers * points <= memory else max(1, memory // (2 * numbers))


def points_read(rows: int, points: int, block: int) -> float:
    """Return about how many points are passed through the model for ``rows`` of K, each block with all later ones."""
    firsts = range(0, rows, block)
    return points + sum(max(0, points - low - 2 * block) for low in firsts)


def add_part(
    survey: Survey,
    part: list[Piece],
    x: torch.Tensor,
    y: torch.Tensor,
    chunk: int,
    block: int,
    K: torch.Tensor,
    first_point: int,
) -> None:
    """Add the inner products over ``part`` to the upper half of ``K`` (n, N), holding two blocks of points at a time.

    Its rows are the first n of the N points of ``x``, whose numbers start at ``first_point``.
    """
    first_rows = [slice(low, min(low + block, len(K))) for low in range(0, len(K), block)]
    blocks = first_rows + [slice(low, min(low + block, len(x))) for low in range(len(K), len(x), block)]
    following: list[Held] | None = None
    for first, rows in enumerate(first_rows):
        left = held(survey, part, x[rows], y[rows], chunk, first=first_point) if following is None else following
        following = None
        add_block(survey, part, left, left, K[rows, rows])
        for columns in reversed(blocks[first + 1 :]):  # the last one is the next left
            following = None
            # Every point is checked when it is first read.
            following = held(
                survey, part, x[columns], y[columns], chunk, checked=not first, first=first_point + columns.start
            )
            add_block(survey, part, left, following, K[rows, columns])


def add_block(survey: Survey, part: list[Piece], left: list[Held], right: list[Held], K: torch.Tensor) -> None:
    """Add the inner products over all pieces of two blocks of points to ``K``."""
    for piece, one, other in zip(part, left, right, strict=True):
        add_products(survey, piece, one, one if left is right else other, K)


def mirrored(K: torch.Tensor) -> torch.Tensor:
    """Copy the upper half of ``K`` onto the lower, in place, without a second N × N array."""
    for row in range(1, len(K)):
        K[row, :row] = K[:row, row]
    return K


def squared_norms(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    loss: str | Loss = "cross_entropy",
    chunk: int = CHUNK,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    memory: int = MEMORY,
) -> torch.Tensor:
    """Return ‖g_j‖² (N,) float64, the diagonal of K, in a time that grows with N only; arguments as for ``gram``."""
    limit = checked_limit(chunk, chunk, None, memory, dtype)
    with surveyed(model, x, y, loss=loss, dtype=dtype, device=device, chunk=chunk) as survey:
        found = torch.zeros(len(x), dtype=torch.float64, device=survey.device)
        for part in parts(pieces(survey, "norms", limit), limit):
            for low in range(0, len(x), chunk):
                rows = slice(low, low + chunk)
                for piece, one in zip(part, passed(survey, part, x[rows], y[rows], first=low), strict=True):
                    found[rows] += squares(survey, piece, one)
    check_finite(found)
    return found


def gradients(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    loss: str | Loss = "cross_entropy",
    chunk: int = CHUNK,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    memory: int = MEMORY,
) -> torch.Tensor:
    """Return the gradients G (N, P) in ``dtype``, parameters in the model's order; arguments as for ``gram``.

    For small models: BadInput when G needs more than ``memory`` bytes.
    """
    check_auditable(model)
    numbers = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    if len(x) * numbers * dtype.itemsize > memory:
        raise BadInput(
            f"gradients: {len(x)} points × {numbers} parameters need {len(x) * numbers * dtype.itemsize / 2**30:.1f} "
            f"GiB, memory allows {memory / 2**30:.1f}; raise it, or use gram"
        )
    checked_limit(len(x), chunk, None, memory, dtype)
    with surveyed(model, x, y, loss=loss, dtype=dtype, device=device, chunk=chunk) as survey:
        start = starts(survey)
        part = pieces(survey, "rows", numbers)  # undivided, since none is larger
        G = torch.empty(len(x), numbers, dtype=dtype, device=survey.device)
        for low in range(0, len(x), chunk):
            rows = slice(low, low + chunk)
            for piece, (found,) in zip(part, passed(survey, part, x[rows], y[rows], first=low), strict=True):
                G[rows, start[piece.parameter] : start[piece.parameter] + piece.size] = found
    check_finite(G.sum(1))
    return G


def starts(survey: Survey) -> dict[str, int]:
    """Return the column of each parameter's first number in G."""
    found, column = {}, 0
    for name in survey.wanted:
        found[name] = column
        column += survey.model.get_parameter(name).numel()
    return found


def checked_limit(points: int, chunk: int, parameter_chunk: int | None, memory: int, dtype: torch.dtype) -> int:
    """Return how many numbers of each of ``points`` are held at once; BadInput for sizes below 1."""
    sizes: dict[str, object] = {"chunk": chunk, "parameter_chunk": parameter_chunk, "memory": memory}
    for name, value in sizes.items():
        if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
            raise BadInput(f"{name} is {value!r}; it must be a whole number, 1 or more")
    return parameter_chunk or max(1, memory // (max(1, points) * dtype.itemsize))


def check_finite(values: torch.Tensor, first: int = 0) -> None:
    """Raise BadInput naming the first point whose gradient is not finite; ``values`` are of points ``first``, …."""
    bad = torch.nonzero(~torch.isfinite(values)).flatten().tolist()
    if bad:
        raise BadInput(
            f"the gradient of point {first + bad[0]} is not finite ({len(bad)} of {len(values)} are not); check loss "
            "and weights, or use dtype=torch.float64"
        )
