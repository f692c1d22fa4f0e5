"""Inner products of gradients that are held as ghosts or as numbers: always in float64, a tile at a time."""

from __future__ import annotations

import torch

from audits.gradients.engine import Held, Piece
from audits.gradients.layers import OuterRule, rule_of
from audits.gradients.survey import Survey

TILE = 2**22  # numbers of one temporary array: 32 MiB in float64
SIDE = 512  # points of a tile of numbers


def add_products(survey: Survey, piece: Piece, left: Held, right: Held, K: torch.Tensor) -> None:
    """Add the inner products of the points of ``left`` (n) and ``right`` (m) to ``K`` (n, m) float64, in place.

    Where ``left`` is ``right``, tiles below the diagonal are left out.
    """
    side = SIDE
    if piece.ghost:
        groups, positions = left[1].shape[1:3]
        side = max(1, int((TILE / groups) ** 0.5) // positions)
    for low in range(0, len(left[0]), side):
        rows = slice(low, low + side)
        for start in range(low if left is right else 0, len(right[0]), side):
            columns = slice(start, start + side)
            if piece.ghost:
                ghost_tile(survey, piece, left, right, rows, columns, K)
            else:
                number_tile(left[0][rows], right[0][columns], K[rows, columns])


def ghost_tile(
    survey: Survey, piece: Piece, left: Held, right: Held, rows: slice, columns: slice, K: torch.Tensor
) -> None:
    """Add Σ_t,s (a_t·a'_s)(b_t·b'_s) of one tile of points to ``K``."""
    rule = outer_rule(survey, piece)
    a, other_a, b, other_b = left[0][rows], right[0][columns], left[1][rows], right[1][columns]
    product = rule.inner(a, other_a)
    product = product.mul_(OuterRule.inner(rule, b, other_b))
    n, m, positions, other = len(a), len(other_a), a.shape[2], other_a.shape[2]
    K[rows, columns] += product.reshape(-1, n, positions, m, other).sum((0, 2, 4))


def number_tile(left: torch.Tensor, right: torch.Tensor, K: torch.Tensor) -> None:
    """Add left rightᵀ to ``K``, some columns of both at a time."""
    width = max(1, TILE // max(len(left), len(right)))
    for one, two in zip(left.split(width, 1), right.split(width, 1), strict=True):
        K.addmm_(one.double(), two.double().T)


def squares(survey: Survey, piece: Piece, found: Held) -> torch.Tensor:
    """Return the squared norm of each point's gradient of a piece, (n,) float64."""
    if not piece.ghost:
        return found[0].double().square().sum(1)
    rule = outer_rule(survey, piece)
    a, b = found
    return (rule.inner_of_each(a) * OuterRule.inner_of_each(rule, b)).sum((1, 2, 3))


def outer_rule(survey: Survey, piece: Piece) -> OuterRule:
    """Return the rule of a piece that is a ghost."""
    assert piece.module is not None
    rule = rule_of(survey.model.get_submodule(piece.module))
    assert isinstance(rule, OuterRule)
    return rule
