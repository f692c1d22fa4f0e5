"""The time that gradient uniqueness of many points will take, measured on a few of them before it begins.

Both costs are sums over parts of the parameters, as many as the memory asks for: each part is a pass over all points,
and of the Gram matrix a product of all pairs besides. A few parts are done for a few points, and a product of full size
is timed; the rest is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from audits.gradients.engine import Piece, held, parts, pieces
from audits.gradients.gram import CHUNK, MEMORY, add_block, block_of, checked_limit, points_read
from audits.gradients.products import SIDE, TILE, number_tile
from audits.gradients.survey import Survey, surveyed
from audits.uniqueness.diagonal import add_part
from audits.uniqueness.scores import needs_gram

SAMPLED = 2
"""Parts that are timed; the others are taken to last as long."""
SQUARES = 8
"""Times ``chunk`` points that mode diagonal holds a parameter for (``diagonal_uniqueness``)."""
FACTORS = {"ridge": 1, "pinv": 20}
"""N³ multiplications that a mode does on the Gram matrix: a Cholesky factor and its inverse, or eigenvectors."""


@dataclass(frozen=True)
class Outlook:
    """Seconds of work in one process, and the most bytes that it holds beside the points.

    ``first``: the seconds that the first of the modes takes alone.
    """

    seconds: float
    bytes: int
    first: float


def outlook(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    points: int,
    modes: tuple[str, ...] = ("ridge", "diagonal"),
    *,
    chunk: int = CHUNK,
    memory: int = MEMORY,
    clock: Callable[[], float] = time.perf_counter,
) -> Outlook:
    """Return what ``point_scores`` of so many ``points`` takes, from a few of them: ``x`` (n, …) and ``y`` (n,).

    ``model`` must be auditable, as for ``gram``. Takes some passes of n points. Raises BadInput as ``gram`` does.
    """
    begin = clock()
    with surveyed(model, x, y, chunk=chunk) as survey:
        begun = clock() - begin
        one = product_seconds(points, survey.device, clock)
        shared = gram_seconds(survey, x, y, points, chunk, memory, one, clock) if needs_gram(modes) else 0.0
        own = {mode: FACTORS.get(mode, 0) * points**3 * one for mode in modes}
        if "diagonal" in modes:
            own["diagonal"] = begun + diagonal_seconds(survey, x, y, points, chunk, memory, clock)
        total = begun + shared + sum(own.values())
        first = begun + (shared if needs_gram(modes[:1]) else 0.0) + own[modes[0]]
        copies = 3 * sum(value.numel() for value in survey.model.parameters()) * survey.dtype.itemsize
    return Outlook(total, (2 * 8 * points**2 if needs_gram(modes) else 0) + memory + copies, first)


def gram_seconds(
    survey: Survey, x: torch.Tensor, y: torch.Tensor, points: int, chunk: int, memory: int, one: float,
    clock: Callable[[], float],
) -> float:  # fmt: skip
    """Return the seconds of the Gram matrix; ``one``: of a multiplication and addition of two numbers."""
    limit = checked_limit(points, chunk, None, memory, survey.dtype)
    todo = list(parts(pieces(survey, "pairs", limit), limit))
    total = 0.0
    for part in sampled(todo):
        read, products = once(survey, part, x, y, chunk, clock)
        passes = points_read(points, points, block_of(survey, part, points, memory)) / len(x)
        total += read * passes + products * (points / len(x)) ** 2
    plain = sum(piece.size for part in todo for piece in part if not piece.ghost)
    return total * len(todo) / len(sampled(todo)) + plain * points**2 / 2 * one


def once(
    survey: Survey, part: list[Piece], x: torch.Tensor, y: torch.Tensor, chunk: int, clock: Callable[[], float]
) -> tuple[float, float]:
    """Return the seconds of one pass of ``x`` for a part, and of the products of its ghosts."""
    ghosts = [place for place, piece in enumerate(part) if piece.ghost]
    begin = clock()
    each = held(survey, part, x, y, chunk)
    read = clock() - begin
    K = torch.zeros(len(x), len(x), dtype=torch.float64, device=survey.device)
    begin = clock()
    add_block(survey, [part[place] for place in ghosts], *2 * ([each[place] for place in ghosts],), K)
    finished(K)
    return read, clock() - begin


def diagonal_seconds(
    survey: Survey, x: torch.Tensor, y: torch.Tensor, points: int, chunk: int, memory: int,
    clock: Callable[[], float],
) -> float:  # fmt: skip
    """Return the seconds of mode diagonal: two passes for each part."""
    limit = checked_limit(SQUARES * chunk, chunk, None, memory, survey.dtype)
    todo = list(parts(pieces(survey, "rows", limit), limit))
    D = torch.zeros(len(x), dtype=torch.float64, device=survey.device)
    begin = clock()
    for part in sampled(todo):
        add_part(survey, part, x, y, chunk, 1.0, D)
    finished(D)
    return (clock() - begin) * len(todo) / len(sampled(todo)) * points / len(x)


def product_seconds(points: int, device: torch.device, clock: Callable[[], float]) -> float:
    """Return the seconds of a multiplication and addition within products of the size that the Gram matrix has."""
    side = min(points, SIDE)
    rows = torch.ones(side, TILE // side // 4, dtype=torch.float64, device=device)
    K = torch.zeros(side, side, dtype=torch.float64, device=device)
    number_tile(rows, rows, K)  # the first one starts threads and libraries
    finished(K)
    begin = clock()
    number_tile(rows, rows, K)
    finished(K)
    return (clock() - begin) / (side * rows.numel())


def sampled(todo: Sequence[list[Piece]]) -> list[list[Piece]]:
    """Return the parts that are timed, from the middle and the end: the first one has what starts up."""
    return [todo[-1], *([todo[len(todo) // 2]] if len(todo) > 1 else [])][:SAMPLED]


def finished(values: torch.Tensor) -> None:
    """Wait until ``values`` are computed."""
    float(values.sum())
