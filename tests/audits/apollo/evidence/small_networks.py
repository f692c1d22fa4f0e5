"""Random networks of six inputs and five classes, on which attacks that ask for labels are tested."""

from __future__ import annotations

import torch
from torch import nn

CLASSES = 5


def models(count: int, seed: int) -> list[nn.Module]:
    torch.manual_seed(seed)
    made = [nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, CLASSES)).double().eval() for _ in range(count)]
    return [model.requires_grad_(False) for model in made]
