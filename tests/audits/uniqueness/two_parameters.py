"""A model of two parameters trained in float64, and its gradients along the way by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.seeds import derive_seed, torch_generator
from audits.training.loop import batches
from audits.training.recipe import Recipe
from tests.cases.brute_force_uniqueness import Floats

RECIPE = Recipe(optimizer="sgd", momentum=0.0, learning_rate=0.5, weight_decay=0.0, epochs=3, batch_size=3)
POINTS = 7


def two_parameters() -> nn.Module:
    """Return logits w·x of two classes, x one number."""
    model = nn.Linear(1, 2, bias=False).double()
    model.weight.data = torch.tensor([[0.3], [-0.2]], dtype=torch.float64)
    return model


def line() -> TensorSet:
    x = torch.linspace(-2.0, 1.5, POINTS, dtype=torch.float64)[:, None]
    return TensorSet(x, torch.tensor([0, 1, 1, 0, 1, 0, 0]))


@dataclass(frozen=True)
class ByHand:
    """Rows of each batch and the gradients (S + 1, N, 2) and losses (S + 1, N) before each step and after the last."""

    rows: list[list[int]]
    gradients: list[Floats]
    losses: list[Floats]


def trained_by_hand(seed: int) -> ByHand:
    data, w = line(), np.array([0.3, -0.2])
    x, y = data.x.numpy()[:, 0], data.y.numpy()
    order = torch_generator(derive_seed(seed, "order"))
    found = ByHand([], [], [])

    def see() -> None:
        p = np.exp(np.outer(x, w))
        p /= p.sum(1, keepdims=True)
        found.losses.append(-np.log(p[np.arange(POINTS), y]))
        found.gradients.append((p - np.eye(2)[y]) * x[:, None])

    for _ in range(RECIPE.epochs):
        for rows in batches(POINTS, RECIPE.batch_size, order):
            see()
            found.rows.append(rows.tolist())
            w = w - RECIPE.learning_rate * found.gradients[-1][rows.numpy()].mean(0)
    see()
    return found
