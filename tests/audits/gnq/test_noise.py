"""Pools that share nothing, and noise on the gradients of single points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from audits.data.pools import draw_pools
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gnq.noise import BatchNoise, fit_noised, noise_scale
from audits.seeds import torch_generator
from audits.training.fit import fit
from audits.training.recipe import Recipe
from audits.uniqueness.accumulate import Trace

RECIPE = Recipe(optimizer="sgd", learning_rate=0.1, epochs=3, batch_size=5, momentum=0.0, weight_decay=0.0)


def points(count: int = 20) -> TensorSet:
    generator = torch_generator(1)
    return TensorSet(torch.rand(count, 4, generator=generator), torch.arange(count) % 3)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 3)


def test_pools_share_no_point_and_more_of_them_leave_the_others_as_they_are() -> None:
    ids = np.arange(100, 200)
    few, many = draw_pools(ids, 2, 10, 15, seed=3), draw_pools(ids, 4, 10, 15, seed=3)
    every = np.concatenate([many.pools.ravel(), many.test])
    assert many.pools.shape == (4, 20)
    assert len(np.unique(every)) == len(every) == 95
    assert np.isin(every, ids).all()
    assert (few.test == many.test).all()
    assert (few.pools == many.pools[:2]).all()
    assert (np.diff(many.pools, axis=1) > 0).all()


def test_too_few_points_are_refused() -> None:
    with pytest.raises(BadInput, match="are 96, but there are 95; lower pools"):
        draw_pools(np.arange(95), 4, 10, 16, seed=0)


@pytest.mark.parametrize(("marked", "scale"), [(np.zeros(20, bool), 1.0), (np.ones(20, bool), 0.0)])
def test_without_noise_the_bits_are_those_of_fit(marked: np.ndarray, scale: float) -> None:
    plain = fit(net(), points(), RECIPE, seed=5)
    found = fit_noised(net(), points(), RECIPE, seed=5, marked=marked, scale=scale)
    assert all((a == b).all() for a, b in zip(plain.parameters(), found.parameters(), strict=True))


def test_noise_has_the_variance_of_one_draw_for_each_marked_point_of_the_batch() -> None:
    marked = torch.tensor([True, True, False, True, False, False])
    noise = BatchNoise(marked, scale=2.0, generator=torch_generator(0))
    weight = nn.Parameter(torch.zeros(40_000))
    seen = {}
    with noise.on(nn.ParameterList([weight])):
        for rows in ([0, 2], [0, 1, 3, 4], [2, 4, 5]):
            noise.before_step(torch.tensor(rows))
            weight.grad = None
            weight.sum().mul(0.0).backward()
            assert weight.grad is not None
            seen[len(rows)] = float(weight.grad.std())
    assert seen[2] == pytest.approx(2.0 * 1**0.5 / 2, rel=0.02)
    assert seen[4] == pytest.approx(2.0 * 3**0.5 / 4, rel=0.02)
    assert seen[3] == 0.0
    weight.grad = None
    noise.before_step(torch.tensor([0, 1]))
    weight.sum().mul(0.0).backward()
    assert not weight.grad.any()  # type: ignore[union-attr]  # the context has ended


def test_noise_is_scaled_by_the_norms_along_training() -> None:
    norms = np.array([[4.0, 4.0], [16.0, 16.0]])
    trace = Trace(np.array([0, 10]), norms, norms, {}, ("", ""))
    assert noise_scale(trace, 0.5, 40) == pytest.approx(0.5 * np.sqrt(10.0 / 40))


@pytest.mark.parametrize(
    ("marked", "scale", "said"),
    [
        (np.zeros(3, bool), 1.0, "marked is bool"),
        (np.zeros(20), 1.0, "marked is float64"),
        (np.zeros(20, bool), -1.0, "scale is -1.0"),
    ],
)
def test_what_cannot_be_noised_is_refused(marked: np.ndarray, scale: float, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        fit_noised(net(), points(), RECIPE, seed=0, marked=marked, scale=scale)


def test_private_recipes_are_refused() -> None:
    with pytest.raises(BadInput, match="recipe is private"):
        fit_noised(
            net(),
            points(),
            Recipe(noise_multiplier=1.0, max_grad_norm=1.0),
            seed=0,
            marked=np.zeros(20, bool),
            scale=1.0,
        )
