"""The searches that are measured: an architecture, how many shadows, candidates and steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import Shadows
from audits.models import make_model
from audits.seeds import derive_seed, torch_generator

CLASSES = 10
UNIT_RANGE = (0.0, 1.0)


@dataclass(frozen=True)
class Case:
    """One search. ``small``: settings of the same architecture for the comparison in float64.

    ``naive_candidates``: the first so many candidates are given to the naive form; its time is proportional to them.
    """

    name: str
    model: str
    shape: tuple[int, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    small: Mapping[str, Any] = field(default_factory=dict)
    shadows: int = 16
    candidates: int = 256
    naive_candidates: int = 8
    steps: int = 5
    chunk: int = 128
    value_range: tuple[float, float] | None = UNIT_RANGE


DEFAULT_CASES = (
    Case("mlp", "mlp", (1, 14, 14), {"hidden": [128, 128]}, {"hidden": [128, 128]}),
    Case(
        "mlp-12-layers",
        "mlp",
        (2,),
        {"hidden": [256] * 11, "batch_norm": True},
        {"hidden": [32] * 11, "batch_norm": True},
        naive_candidates=2,
        value_range=None,
    ),
    Case("cnn", "cnn", (1, 14, 14), {}, {"channels": [4, 8]}, naive_candidates=4),
    Case(
        "resnet18",
        "resnet18",
        (3, 32, 32),
        {"width": 64},
        {"width": 4},
        shadows=4,
        candidates=32,
        naive_candidates=1,
    ),
)
"""By default on a CPU: minutes in all."""

PAPER_CASES = (
    Case(
        "resnet18",
        "resnet18",
        (3, 32, 32),
        {"width": 64},
        {"width": 4},
        shadows=32,
        candidates=400,
        naive_candidates=1,
        steps=50,
    ),
)
"""The sizes of the paper; meant for a GPU."""


def tiny(case: Case) -> Case:
    """Return the same architecture at a size that ends in a second."""
    return replace(case, settings=case.small, shadows=4, candidates=4, naive_candidates=1, steps=2)


@dataclass(frozen=True)
class Problem:
    """The inputs of ``audits.apollo.evidence.search.search``: see there."""

    shadows: Shadows
    x: torch.Tensor
    y: torch.Tensor
    start: torch.Tensor
    settings: SearchSettings
    value_range: tuple[float, float] | None
    chunk: int

    def models(self) -> list[nn.Module]:
        """Return all shadows, original and unlearned."""
        return [*self.shadows.original, *self.shadows.unlearned]

    def first(self, candidates: int) -> Problem:
        """Return the problem of the first ``candidates`` candidates over the same shadows."""
        shadows = replace(self.shadows, inside=self.shadows.inside[:, :candidates])
        return replace(
            self, shadows=shadows, x=self.x[:candidates], y=self.y[:candidates], start=self.start[:candidates]
        )


def make_problem(case: Case, device: str, dtype: torch.dtype = torch.float32) -> Problem:
    """Return shadows with random weights and random candidates: speed does not depend on what they have learned.

    Every candidate is inside half of the shadows, as in the balanced design.
    """
    generator = torch_generator(derive_seed(0, "benchmark", case.name))
    count, dimensions = case.candidates, int(torch.Size(case.shape).numel())
    x = torch.rand(count, dimensions, generator=generator, dtype=dtype)
    y = torch.randint(CLASSES, (count,), generator=generator)
    start = torch.randn(count, 2, dimensions, generator=generator, dtype=dtype)
    start /= start.norm(dim=-1, keepdim=True)
    half = case.shadows // 2
    inside = torch.stack([torch.randperm(case.shadows, generator=generator) < half for _ in range(count)], dim=1)
    architecture = make_model(case.model, dict(case.settings))

    typical = torch.rand(16, *case.shape, generator=generator, dtype=dtype).to(device)

    def build(purpose: str, i: int) -> nn.Module:
        model = architecture.build(case.shape, CLASSES, derive_seed(0, purpose, i)).to(device, dtype)
        return with_statistics(model, typical)

    original, unlearned = ([build(purpose, i) for i in range(case.shadows)] for purpose in ("original", "unlearned"))
    return Problem(
        Shadows(original, unlearned, inside.to(device), case.shape),
        x.to(device),
        y.to(device),
        start.to(device),
        SearchSettings(steps=case.steps),
        case.value_range,
        case.chunk,
    )


@torch.no_grad()
def with_statistics(model: nn.Module, points: torch.Tensor) -> nn.Module:
    """Return ``model`` in eval mode, its BatchNorm statistics those of ``points``: without them a deep network that
    was never trained hardly passes a gradient on."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.momentum = 1.0
    model.train()(points)
    return model.eval()
