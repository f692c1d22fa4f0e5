"""On a GPU gradients, uniqueness, watched trainings and private steps are those of the CPU, in float64 to 1e-10."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from audits.data.tensors import TensorSet
from audits.gradients.gram import gram
from audits.training.engines.base import Noise
from audits.training.engines.fast import FastEngine
from audits.training.recipe import Recipe
from audits.uniqueness.accumulate import Trace, fit_traced
from audits.uniqueness.diagonal import diagonal_uniqueness
from tests.cases.layer_models import CASES, case

EXACT = 1e-10
GPU = "cuda"
NORMED = ("batch_norm", "batch_norm_1d", "mlp", "resnet18", "vgg16")
"""With BatchNorm, which private training refuses."""
NOT_PRIVATE = (*NORMED, "attention", "attention_other_axis", "recurrent", "tied", "in_place", "unbatchable")
NOT_PRIVATE += ("encoder", "swin_t", "bert", "cnn", "two_names")
"""Read through the whole model or dropping at random: audits/training/test_private_fast.py has what of these works."""

DROPPING = ("encoder", "cnn", "mlp", "swin_t", "bert")
"""Drop at random while they train, otherwise on each device."""

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:Using padding='same'")]  # a case means it


def error(found: object, truth: object) -> float:
    """Return the largest difference, relative to the largest number."""
    one, other = (torch.as_tensor(each).detach().cpu().double() for each in (found, truth))
    assert one.shape == other.shape
    return float((one - other).abs().max() / other.abs().max())


def exact_case(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    model, x, y = case(name)
    return model.double(), x.double() if x.is_floating_point() else x, y


@pytest.mark.parametrize("name", CASES)
def test_gram_and_diagonal_are_those_of_the_cpu(name: str) -> None:
    model, x, y = exact_case(name)
    assert error(gram(model, x, y, device=GPU), gram(model, x, y)) < EXACT
    there = copy.deepcopy(model).to(GPU)
    assert error(diagonal_uniqueness(there, x, y), diagonal_uniqueness(model, x, y)) < EXACT


def traced(name: str, device: str) -> tuple[Trace, nn.Module]:
    model, x, y = exact_case(name)
    recipe = Recipe(
        optimizer="sgd", learning_rate=1e-3, epochs=2, batch_size=3
    )  # with .01 rounding grows a million-fold
    data = TensorSet(x.to(device), y.to(device))
    model = model.to(device)
    return fit_traced(model, data, recipe, seed=3, every=2, in_batch=True), model


@pytest.mark.parametrize("name", [name for name in CASES if name not in DROPPING])
def test_a_watched_training_is_that_of_the_cpu(name: str) -> None:
    (here, model), (there, twin) = traced(name, "cpu"), traced(name, GPU)
    np.testing.assert_array_equal(here.steps, there.steps)
    assert here.in_batch and there.in_batch
    for found, truth in (
        (there.loss, here.loss),
        (there.squared_norm, here.squared_norm),
        (weights(twin), weights(model)),  # all at once: a bias before a BatchNorm has no gradient but rounding
    ):
        assert error(found, truth) < EXACT
    for mode, truth in here.gnq.items():
        assert error(there.gnq[mode], truth) < EXACT
        assert error(there.in_batch.log[mode], here.in_batch.log[mode]) < EXACT


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in model.parameters()])


@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_PRIVATE])
def test_a_fast_private_step_is_that_of_the_cpu(name: str) -> None:
    recipe = Recipe(optimizer="sgd", learning_rate=0.1, batch_size=4, noise_multiplier=0.0, max_grad_norm=0.05)
    found = {}
    for device in ("cpu", GPU):
        model, x, y = exact_case(name)
        noise = Noise(0.0, 0.05, 4.0, torch.Generator(device).manual_seed(0))
        engine = FastEngine(model.to(device), TensorSet(x.to(device), y.to(device)), recipe, noise)
        loss = [engine.step(torch.tensor(rows), torch.Generator()) for rows in ([0, 2, 3], [1, 4])]
        found[device] = loss, engine.weights()
    assert error(found[GPU][0], found["cpu"][0]) < EXACT
    for key, weight in found["cpu"][1].items():
        assert error(found[GPU][1][key], weight) < EXACT
