"""YOQO's query: one input at which shadows that had the candidate say its label and the others say another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from audits.apollo.evidence.asking import walks_along
from audits.apollo.evidence.base import KINDS, Case, Group, Kind
from audits.apollo.evidence.parts import Walks
from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import Asked, Shadows, Stacks
from audits.apollo.evidence.stacked_search import entropies, weights
from audits.arrays import Floats
from audits.memory import by_chunks
from audits.queries.boundary_walk import clip

ALPHA = 2.0
STEPS = 35
LEARNING_RATE = 0.1
ENOUGH = 0.25


@KINDS.register("yoqo")
@dataclass(frozen=True)
class Yoqo(Kind):
    """You Only Query Once, online (Wu et al., ICLR 2024): gradient descent from x on
    mean_in CE(x', y) + 2·mean_out CE(x', y'), y' the class but y that the out-shadows find likeliest at x; a candidate
    rests as soon as its loss is below 0.25 (the reference's m/8 for a sum over m shadows).

    Deviations: in-shadows are unlearned models, as what is audited is one; out-shadows are original, as in Apollo; each
    half makes a query of its own, which the other half calibrates, so a target is asked twice; x' stays in the range.
    """

    settings: ClassVar[tuple[str, ...]] = ()

    def gather(self, case: Case) -> Walks:
        first, second = case.shadows
        found = [crafted(group, case) for group in (first, second)]
        return walks_along(
            [inputs for inputs, _ in found], (second, first), [own for _, own in found], case, at_x=False
        )

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        """Return 2 queries a candidate: one a half."""
        return 2


def crafted(group: Group, case: Case) -> tuple[torch.Tensor, Floats]:
    """Return x' (K, 1, 1, dimensions) of one half's shadows and their mean out-confidence in y there (K, 1, 1)."""
    asked = case.questions
    inside, outside = (torch.from_numpy(side).to(asked.x.device) for side in (group.inside, group.outside))
    forms = Shadows(group.original, group.unlearned, inside, asked.shape, outside).folded().forms(asked.x[:1])
    everyone = torch.arange(len(asked.x), device=asked.x.device)

    def of(part: slice) -> tuple[torch.Tensor, torch.Tensor]:
        rows = everyone[part]
        return crafted_chunk(forms.now, rows, asked.x[rows], asked.y[rows], asked.value_range)

    parts = by_chunks(of, len(asked.x), asked.chunk, forms.fewer)
    inputs, confidence = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
    return inputs[:, None, None], confidence.double().cpu().numpy()[:, None, None]


def crafted_chunk(
    shadows: Shadows,
    rows: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    value_range: tuple[float, float] | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x' (k, dimensions) and the mean out-confidence in y (k,) of the candidates ``rows``."""
    asked = shadows.models_for(rows)
    instead = runner_up(shadows, asked.outside, x, y)
    descend = with_masks if x.is_cuda else with_fewer
    moved = descend(shadows, rows, x, y, instead, value_range)
    return moved, out_probabilities(shadows, asked.outside, moved).gather(1, y[:, None])[:, 0]


def with_fewer(
    shadows: Shadows,
    rows: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    instead: torch.Tensor,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return x' (k, dimensions); candidates that rest are asked about no more, which spares a CPU most of the work."""
    moved, going = x.clone(), torch.ones_like(y, dtype=torch.bool)
    for _ in range(STEPS):
        left = going.nonzero().squeeze(1)
        if len(left) == 0:
            break
        value, gradient = descent(shadows, shadows.models_for(rows[left]), moved[left], y[left], instead[left])
        still = value >= ENOUGH
        going[left] = still
        ahead = (moved[left] - LEARNING_RATE * gradient)[still]
        moved[left[still]] = clip(ahead, value_range)
    return moved


def with_masks(
    shadows: Shadows,
    rows: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    instead: torch.Tensor,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return x' (k, dimensions); all candidates are asked about in all steps, so that no step waits for a GPU."""
    asked = shadows.models_for(rows)
    moved, going = x.clone(), torch.ones_like(y, dtype=torch.bool)
    for _ in range(STEPS):
        value, gradient = descent(shadows, asked, moved, y, instead)
        going = going & (value >= ENOUGH)
        moved = torch.where(going[:, None], clip(moved - LEARNING_RATE * gradient, value_range), moved)
    return moved


def runner_up(shadows: Shadows, outside: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the class (k,) but ``y`` that the out-shadows find likeliest at ``x``."""
    seen = out_probabilities(shadows, outside, x)
    return seen.scatter(1, y[:, None], -1.0).argmax(1)


@torch.no_grad()
def out_probabilities(shadows: Shadows, outside: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """Return the mean probabilities (k, classes) of the original shadows that never saw a candidate."""
    if shadows.stacks is not None:
        answers = shadows.stacks[1].same(points.unflatten(-1, shadows.shape)).softmax(-1)
        return (answers * outside[..., None]).sum(0) / outside.sum(0)[:, None]
    total: torch.Tensor | None = None
    for i, side in enumerate(outside):
        seen = shadows.logits(i, False, points[:, None]).softmax(1) * side[:, None]
        total = seen if total is None else total + seen
    assert total is not None, "a half has at least one shadow"
    return total / outside.sum(0)[:, None]


def descent(
    shadows: Shadows, asked: Asked, moved: torch.Tensor, y: torch.Tensor, instead: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return YOQO's loss (k,) at ``moved`` (k, dimensions) and its gradient."""
    if shadows.stacks is not None:
        return descent_at_once(shadows.stacks, shadows.shape, asked, moved, y, instead)
    value, gradient = moved.new_zeros(len(moved)), torch.zeros_like(moved)
    for is_in, side, wanted, weight in ((True, asked.inside, y, 1.0), (False, asked.outside, instead, ALPHA)):
        share = weight / side.sum(0).to(moved.dtype)
        for i, rows in enumerate(asked.rows_in if is_in else asked.rows_out):
            if len(rows):
                with torch.enable_grad():
                    points = moved[rows, None].detach().requires_grad_(True)
                    output = shadows.logits(i, is_in, points)
                    entropy = F.cross_entropy(output, wanted[rows], reduction="none") * share[rows]
                    (found,) = torch.autograd.grad(entropy.sum(), points)
                value[rows] += entropy.detach()
                gradient[rows] += found[:, 0]
    return value, gradient


def descent_at_once(
    stacks: Stacks,
    shape: tuple[int, ...],
    asked: Asked,
    moved: torch.Tensor,
    y: torch.Tensor,
    instead: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what ``descent`` returns: all shadows are asked about all candidates, and masked."""
    unlearned, original = stacks
    assert unlearned is not None, "YOQO reads unlearned shadows"
    with torch.enable_grad():
        points = moved.detach().requires_grad_(True)
        image = points.unflatten(-1, shape)
        inside = weights(asked.inside, moved.dtype) * entropies(unlearned.same(image), y, 1)
        outside = weights(asked.outside, moved.dtype) * entropies(original.same(image), instead, 1)
        loss = (inside + ALPHA * outside).sum((0, 2))
        (gradient,) = torch.autograd.grad(loss.sum(), points)
    return loss.detach(), gradient
