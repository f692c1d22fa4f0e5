"""The held-out loss of a point is that of models that did not train on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.data.twins import draw_twins
from audits.errors import BadInput
from audits.gnq.held_out import held_out_losses
from audits.models import make_model
from audits.seeds import Purpose, derive_seed
from audits.training.fit import train_model
from audits.training.recipe import Recipe

RECIPE = Recipe(epochs=3, batch_size=4, learning_rate=0.05)


def build(seed: int) -> nn.Module:
    return make_model("mlp", {"hidden": [5]}).build((6,), 3, seed)


def points(count: int = 12) -> TensorSet:
    x = torch.randn(count, 6, generator=torch.Generator().manual_seed(0))
    return TensorSet(x, torch.arange(count) % 3)


def test_it_is_the_mean_over_the_models_without_the_point() -> None:
    data, seed = points(), 5
    found = held_out_losses(build, data, RECIPE, 4, seed)
    seen = np.zeros((4, 12), bool)
    loss = np.zeros((4, 12))
    for index in range(4):
        twins = draw_twins(12, derive_seed(seed, Purpose.HELD_OUT), index // 2)
        seen[index] = twins.half[index % 2]
        rows = np.flatnonzero(seen[index])
        model = train_model(build, TensorSet(data.x[rows], data.y[rows]), RECIPE, twins.seeds[index % 2])
        with torch.no_grad():
            loss[index] = F.cross_entropy(model(data.x).double(), data.y, reduction="none").numpy()
    assert (seen.sum(0) == 2).all()
    np.testing.assert_allclose(found, np.where(seen, 0, loss).sum(0) / 2, rtol=1e-6)


@pytest.mark.parametrize(("models", "count"), [(0, 12), (3, 12), (2, 11)])
def test_models_and_points_come_in_twins(models: int, count: int) -> None:
    with pytest.raises(BadInput, match="even number"):
        held_out_losses(build, points(count), RECIPE, models, 0)
