"""L-BFGS for many independent problems in lockstep: one evaluation of all of them a step.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithm 7.4. Every problem has its own history and step
size. A step that does not lower the cost as far as Armijo's rule asks (c = 10⁻⁴) is halved and tried again, so that
each problem uses one evaluation a step, whatever the others do.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

MEMORY = 10  # pairs that a problem remembers
ARMIJO = 1e-4
HALVINGS = 12  # in a row, after which a problem forgets its history
Evaluate = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Points (P, D) to costs (P,) and their gradients (P, D)."""


def minimised(evaluate: Evaluate, x: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the points (P, D) that ``steps`` steps lead to from ``x`` (P, D), and their costs (P,).

    The cost of no problem rises on the way, and no problem has influence on another.
    """
    cost, slope = evaluate(x)
    pairs = torch.zeros(2, MEMORY, *x.shape, dtype=x.dtype, device=x.device)  # steps, and changes of the gradient
    direction, length = -slope, first_length(slope)
    halvings = torch.zeros_like(cost)
    for _ in range(steps):
        tried = x + length[:, None] * direction
        there, slope_there = evaluate(tried)
        down = (direction * slope).sum(1)
        good = torch.isfinite(there) & torch.isfinite(slope_there).all(1) & (there <= cost + ARMIJO * length * down)
        pair = torch.stack([tried - x, slope_there - slope])
        curved = good & ((pair[0] * pair[1]).sum(1) > 1e-10 * pair[0].norm(dim=1) * pair[1].norm(dim=1))
        pairs = torch.where(curved[None, None, :, None], torch.cat([pairs[:, 1:], pair[:, None]], 1), pairs)
        x, slope = torch.where(good[:, None], tried, x), torch.where(good[:, None], slope_there, slope)
        cost, halvings = torch.where(good, there, cost), torch.where(good, 0, halvings + 1)
        stuck = halvings > HALVINGS
        pairs = pairs.masked_fill(stuck[None, None, :, None], 0)
        halvings = halvings.masked_fill(stuck, 0)
        fresh = good | stuck
        direction = torch.where(fresh[:, None], descent(slope, pairs), direction)
        known = (pairs[1, -1] != 0).any(1)
        length = torch.where(fresh, torch.where(known, torch.ones_like(length), first_length(slope)), length / 2)
    return x, cost


def first_length(slope: torch.Tensor) -> torch.Tensor:
    """Return the step size (P,) of a problem that remembers nothing: as torch's L-BFGS, min(1, 1 / Σ|g|)."""
    total = slope.abs().sum(1)
    return torch.where(total > 1, 1 / total.clamp_min(1), torch.ones_like(total))


def descent(slope: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """Return −H g (P, D) by the two loops over ``pairs`` (2, M, P, D), oldest first; a pair of zeros does nothing."""
    product = (pairs[0] * pairs[1]).sum(2)
    weight = torch.where(product > 0, 1 / product.masked_fill(product <= 0, 1), 0)
    q, alphas = slope, []
    for step, change, rho in zip(*(each.flip(0) for each in (*pairs, weight)), strict=True):
        alphas.append(rho * (step * q).sum(1))
        q = q - alphas[-1][:, None] * change
    square = pairs[1, -1].square().sum(1)
    q = q * torch.where(square > 0, product[-1] / square.masked_fill(square <= 0, 1), 1)[:, None]
    for step, change, rho, alpha in zip(*pairs, weight, reversed(alphas), strict=True):
        q = q + (alpha - rho * (change * q).sum(1))[:, None] * step
    return -q
