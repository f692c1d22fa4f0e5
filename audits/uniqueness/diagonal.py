"""Gradient uniqueness with the diagonal of S: each parameter by itself, so it needs gradients rather than K."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from audits.gradients.engine import Piece, parts, passed, pieces
from audits.gradients.gram import CHUNK, MEMORY, check_finite, checked_limit, squared_norms
from audits.gradients.gram_checks import check_ridge
from audits.gradients.heard import counted
from audits.gradients.residuals import Loss
from audits.gradients.survey import Survey, surveyed

BLOCK = 1024
"""Parameters that are worked on at once on a CPU; all of them together would go through memory a dozen times."""


@dataclass
class Totals:
    """Sums over points of one piece's squares: ``most`` the largest one, ``owner`` its point, ``rest`` all others.

    ``most + rest − own`` is exact but for the owner, where it may cancel; the owner's others are ``rest`` itself.
    """

    most: torch.Tensor
    owner: torch.Tensor
    rest: torch.Tensor

    @classmethod
    def of_none(cls, like: torch.Tensor) -> Totals:
        """Return the totals of no points for pieces such as ``like`` (n, numbers)."""
        zeros = like.new_zeros(like.shape[1])
        return cls(zeros, zeros.long(), zeros.clone())

    def add(self, squares: torch.Tensor, first: int) -> None:
        """Take in the squares (n, numbers) of the points ``first``, ``first`` + 1, …."""
        most, owner = squares.max(0)
        rest = squares.scatter(0, owner[None], 0.0).sum(0)
        self.rest += rest + torch.minimum(most, self.most)
        self.owner = torch.where(most > self.most, owner + first, self.owner)
        self.most = torch.maximum(most, self.most)

    def of_others(self, squares: torch.Tensor, first: int) -> torch.Tensor:
        """Return the sum of squares of all points but its own, (n, numbers), for the points from ``first`` on."""
        points = torch.arange(first, first + len(squares), device=squares.device)[:, None]
        # A backward pass on a GPU may round its second run otherwise, hence the clamp.
        return torch.where(self.owner == points, self.rest, (self.most - squares).clamp_(min=0) + self.rest)


def diagonal_uniqueness(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    ridge: float = 1e-3,
    relative: bool = True,
    loss: str | Loss = "cross_entropy",
    chunk: int = CHUNK,
    parameter_chunk: int | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    memory: int = MEMORY,
) -> torch.Tensor:
    """Return D_j = Σ_p g_jp² / (Σ_{k≠j} g_kp² + λ), (N,) float64; arguments as for ``gram``.

    λ = ``ridge``, if ``relative`` in units of the mean of g_jp² over points and parameters: it stands beside the sum
    over the points of one parameter, where mode ridge has it beside that over all. Two passes over all points for every
    ``parameter_chunk`` parameters (default: what ``chunk`` points may hold in ``memory``), and 24 bytes for each of
    these parameters. Where all gradients are zero, D is 0.
    """
    check_ridge(ridge)
    limit = checked_limit(8 * chunk, chunk, parameter_chunk, memory, dtype)
    unit = 1.0
    if relative:
        norms = squared_norms(model, x, y, loss=loss, chunk=chunk, dtype=dtype, device=device, memory=memory)
        unit = mean_square(model, norms)
    with surveyed(model, x, y, loss=loss, dtype=dtype, device=device, chunk=chunk) as survey:
        found = torch.zeros(len(x), dtype=torch.float64, device=survey.device)
        if unit > 0:
            todo = list(parts(pieces(survey, "rows", limit), limit))
            with counted("mode diagonal", 2 * len(todo) * len(x)):
                for part in todo:
                    add_part(survey, part, x, y, chunk, ridge * unit, found)
    check_finite(found)
    return found


def mean_square(model: nn.Module, squared_norms: torch.Tensor) -> float:
    """Return the mean of g_jp² over N points and the parameters that need gradients; from ‖g_j‖² (N,)."""
    numbers = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return float(squared_norms.mean()) / numbers


def add_part(
    survey: Survey, part: list[Piece], x: torch.Tensor, y: torch.Tensor, chunk: int, shift: float, D: torch.Tensor
) -> None:
    """Add the sum over the parameters of ``part`` to ``D``; ``shift`` is λ."""
    totals: list[Totals] = []
    for low in range(0, len(x), chunk):
        blocks = squares(survey, part, x[low : low + chunk], y[low : low + chunk], first=low)
        for place, one in enumerate(blocks):
            if place == len(totals):
                totals.append(Totals.of_none(one))
            totals[place].add(one, low)
    for low in range(0, len(x), chunk):
        rows = slice(low, low + chunk)
        for total, one in zip(totals, squares(survey, part, x[rows], y[rows], checked=False), strict=True):
            D[rows] += (one / (total.of_others(one, low) + shift)).sum(1)


def squares(
    survey: Survey, part: list[Piece], x: torch.Tensor, y: torch.Tensor, *, checked: bool = True, first: int = 0
) -> Iterator[torch.Tensor]:
    """Yield the squares of the gradients of a few points, (n, numbers) float64, in blocks that a CPU's cache holds."""
    for (rows,) in passed(survey, part, x, y, checked=checked, first=first):
        width = max(1, rows.shape[1]) if rows.is_cuda else BLOCK
        for low in range(0, rows.shape[1], width):
            yield rows[:, low : low + width].double().square()
