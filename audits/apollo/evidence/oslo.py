"""OSLO's query: the smallest transferable perturbation that fools models which never saw the candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from audits.apollo.evidence.asking import walks_along
from audits.apollo.evidence.base import KINDS, Case, Group, Kind, Questions
from audits.apollo.evidence.parts import Walks
from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import folded
from audits.memory import by_chunks
from audits.queries.boundary_walk import clip

FOOLED = 0.25
LEVELS = 20
STEPS_A_LEVEL = 3
LARGEST = 80 / 255
VALIDATION_SHARE = 0.25


@KINDS.register("oslo")
@dataclass(frozen=True)
class Oslo(Kind):
    """One-Shot Label-Only (Peng et al., arXiv 2405.16978), from offline shadows alone, once for all methods.

    Source models are attacked by iterated signed gradients inside an L∞ ball that grows level by level, up to 80/255 of
    the range; a candidate rests at the first step at which the validation models' mean confidence in its label is below
    0.25, a threshold of ours. Then one label is asked: a member is not fooled yet. Deviations: a quarter of a half's
    offline shadows validate (3 of 12 in the paper; a half's only shadow does both); plain signed gradients in place of
    momentum and input transformations; 20 levels of 3 steps; each half makes a query, so a target is asked twice.
    """

    reads: ClassVar[tuple[str, ...]] = ("offline",)
    settings: ClassVar[tuple[str, ...]] = ()
    traced: ClassVar[bool] = True

    def trace(self, case: Case) -> dict[str, NDArray[Any]]:
        """Return ``inputs.g`` (K, 1, 1, dimensions) and ``confidence.g`` (K, 1, 1) of the groups g = 0, 1."""
        found: dict[str, NDArray[Any]] = {}
        for number, group in enumerate(case.offline_shadows):
            source, validation = surrogates(group)
            inputs, confidence = all_fooling(source, validation, case.questions)
            found[f"inputs.{number}"] = inputs[:, None, None].cpu().numpy()
            found[f"confidence.{number}"] = confidence.double()[:, None, None].cpu().numpy()
        return found

    def gather(self, case: Case) -> Walks:
        first, second = case.offline_shadows
        points = [torch.from_numpy(case.trace[f"inputs.{number}"]).to(case.questions.x) for number in (0, 1)]
        expected = [np.asarray(case.trace[f"confidence.{number}"]) for number in (0, 1)]
        return walks_along(points, (second, first), expected, case, at_x=False)

    @classmethod
    def queries(cls, settings: SearchSettings, budget: int) -> int:
        """Return 2 queries a candidate: one a half."""
        return 2


def surrogates(group: Group) -> tuple[list[nn.Module], list[nn.Module]]:
    """Return source and validation models of a half: the last quarter, at least one, validates."""
    models = [folded(model) for model in group.original]
    held = max(1, round(VALIDATION_SHARE * len(models)))
    return models[:-held] or models, models[-held:]


def all_fooling(
    source: Sequence[nn.Module], validation: Sequence[nn.Module], asked: Questions
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x' (K, dimensions) and confidence (K,) of all candidates, as ``fooling`` does."""
    everyone = torch.arange(len(asked.x), device=asked.x.device)
    parts = by_chunks(lambda rows: fooling(source, validation, asked, everyone[rows]), len(asked.x), asked.chunk)
    inputs, confidence = (torch.cat(pieces) for pieces in zip(*parts, strict=True))
    return inputs, confidence


def fooling(
    source: Sequence[nn.Module], validation: Sequence[nn.Module], asked: Questions, rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x' (k, dimensions) of the candidates ``rows`` and the mean confidence (k,) of ``validation`` in y."""
    x, y = asked.x[rows], asked.y[rows]
    low, high = asked.value_range or (0.0, 1.0)
    moved = x.clone()
    confidence = own_confidence(validation, moved, y, asked.shape)
    for level in range(1, LEVELS + 1):
        bound = LARGEST * (high - low) * level / LEVELS
        for _ in range(STEPS_A_LEVEL):
            going = confidence >= FOOLED
            if not x.is_cuda and not bool(going.any()):  # a GPU would be waited for in every step
                return moved, confidence
            ahead = moved + bound / STEPS_A_LEVEL * ascent(source, moved, y, asked.shape).sign()
            ahead = x + (ahead - x).clamp(-bound, bound)
            moved = torch.where(going[:, None], clip(ahead, asked.value_range), moved)
            confidence = torch.where(going, own_confidence(validation, moved, y, asked.shape), confidence)
    return moved, confidence


@torch.no_grad()
def own_confidence(
    models: Sequence[nn.Module], points: torch.Tensor, y: torch.Tensor, shape: tuple[int, ...]
) -> torch.Tensor:
    """Return the mean probability (k,) that ``models`` give to class ``y`` at ``points`` (k, dimensions)."""
    seen = torch.stack([model(points.unflatten(-1, shape)).softmax(1) for model in models])
    return seen.mean(0).gather(1, y[:, None])[:, 0]


def ascent(models: Sequence[nn.Module], points: torch.Tensor, y: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the gradient (k, dimensions) of the summed cross entropy of ``models`` to ``y``."""
    total = torch.zeros_like(points)
    for model in models:
        with torch.enable_grad():
            own = points.detach().requires_grad_(True)
            entropy = F.cross_entropy(model(own.unflatten(-1, shape)), y, reduction="sum")
            (found,) = torch.autograd.grad(entropy, own)
        total += found
    return total
