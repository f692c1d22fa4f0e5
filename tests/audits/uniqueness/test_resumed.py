"""A watched training that is lost and resumed has seen what an undisturbed one sees, all bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.gnq.held_out import held_out_losses
from audits.gnq.noise import fit_noised
from audits.models import make_model
from audits.training.keeper import NEVER, Keeper, Phases
from audits.training.recipe import Recipe
from audits.uniqueness.accumulate import fit_kept, fit_traced
from audits.uniqueness.watching import train_watched
from tests.cases.families import thinned
from tests.cases.lost import lost_and_resumed, steps_of

POINTS, CLASSES = 20, 3
RECIPE = Recipe(optimizer="adam", learning_rate=0.01, epochs=2, batch_size=8)


def points() -> TensorSet:
    generator = torch.Generator().manual_seed(5)
    return TensorSet(torch.rand(POINTS, 6, generator=generator), torch.arange(POINTS) % CLASSES)


def build(seed: int) -> nn.Module:
    return make_model("mlp", {"hidden": [9], "dropout": 0.3}).build((6,), CLASSES, seed)


def arrays(found: Any) -> dict[str, Any]:
    """Return all numbers in what a training left, by their places."""
    if isinstance(found, np.ndarray | torch.Tensor):
        return {"": np.asarray(found.detach() if isinstance(found, torch.Tensor) else found)}
    if isinstance(found, nn.Module):
        return arrays(dict(found.state_dict()))
    if isinstance(found, dict):
        inside = found
    elif isinstance(found, tuple):
        inside = dict(enumerate(found))
    elif hasattr(found, "__dict__"):
        inside = vars(found)
    else:
        return {"": np.asarray(found)}
    return {f"{name}/{at}": value for name, each in inside.items() for at, value in arrays(each).items()}


def watched(keeper: Keeper) -> Any:
    return train_watched(build, points(), RECIPE, 3, keeper=keeper)


def in_batch(keeper: Keeper) -> Any:
    model = build(1)
    modes = ("ridge", "pinv", "diagonal")
    trace = fit_traced(model, points(), RECIPE, seed=3, every=4, modes=modes, in_batch=True, keeper=keeper)
    return model, trace


def kept(keeper: Keeper) -> Any:
    model = build(1)
    return model, fit_kept(model, points(), RECIPE, seed=3, every=2, keeper=keeper)


def noised(keeper: Keeper) -> Any:
    marked = np.arange(POINTS) % 2 == 0
    return fit_noised(build(1), points(), RECIPE, seed=3, marked=marked, scale=0.1, keeper=keeper)


def held_out(keeper: Keeper) -> Any:
    return held_out_losses(build, points(), RECIPE, 2, 3, Phases(keeper))


@pytest.mark.parametrize(
    "train", thinned([watched, in_batch, kept, noised, held_out], [watched, kept, noised, held_out])
)
def test_a_watched_training_lost_behind_any_step_has_seen_the_same(train: Any) -> None:
    whole, total = arrays(train(NEVER)), steps_of(train)
    for step in (2,) if train is watched else (3, total):
        found, after = lost_and_resumed(train, step)
        assert after == total - step
        again = arrays(found)
        assert again.keys() == whole.keys()
        for name, value in whole.items():
            np.testing.assert_array_equal(again[name], value, err_msg=name)
