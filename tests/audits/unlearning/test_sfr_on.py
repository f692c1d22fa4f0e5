"""SFR-on is the written-out update, and its Fisher information is that of single points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from audits.data.tensors import TensorSet
from audits.models import make_model
from audits.seeds import derive_seed
from audits.unlearning import fisher
from audits.unlearning.fisher import diagonal_fisher
from audits.unlearning.sfr_on import adaptive_entropy, fisher_mask
from tests.audits.unlearning.cases import CLASSES, FORGET, RETAIN, plain, points, run, same_state, trained
from tests.cases.slow_net import Floats, SlowNet, SlowSGD, clipped, largest_difference, one_hot, softmax


def slow_fisher(net: SlowNet, data: TensorSet) -> list[Floats]:
    """Return the mean of the squared gradients of the points, one after the other, in NumPy."""
    x, y = data.x.numpy(), data.y.numpy()
    total = [np.zeros_like(weight) for weight in net.weights]
    for i in range(len(x)):
        row = slice(i, i + 1)
        for whole, part in zip(total, net.gradients(x[row], net.entropy_gradient(x[row], y[row])), strict=True):
            whole += part**2 / len(x)
    return total


def looped_fisher(model: nn.Module, data: TensorSet) -> list[torch.Tensor]:
    """Return the same by one backward pass a point, for any model in eval mode."""
    total = [torch.zeros_like(weight, dtype=torch.float64) for weight in model.parameters()]
    for i in range(len(data)):
        x, y = data.batch(slice(i, i + 1))
        parts = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
        for whole, part in zip(total, parts, strict=True):
            whole += part.double() ** 2 / len(data)
    return total


def slow_sfr_on(model: nn.Module, settings: dict[str, Any], seed: int) -> SlowNet:
    """Return the network after all iterations, in NumPy."""
    net = SlowNet(model)
    forget, retain = points(FORGET, 1, torch.float64), points(RETAIN, 2, torch.float64)
    mask: list[NDArray[np.bool_]] = [
        of_forget >= settings["fisher_ratio"] * of_retain
        for of_forget, of_retain in zip(slow_fisher(net, forget), slow_fisher(net, retain), strict=True)
    ]
    optimizer, total = SlowSGD(net, settings["momentum"], settings["weight_decay"]), settings["iterations"]
    waiting: dict[str, list[NDArray[np.int64]]] = {"forget order": [], "order": []}
    orders = {purpose: torch.Generator().manual_seed(derive_seed(seed, purpose)) for purpose in waiting}

    def following(purpose: str, count: int, size: int) -> NDArray[np.int64]:
        if not waiting[purpose]:
            shuffled = torch.randperm(count, generator=orders[purpose]).numpy()
            waiting[purpose] = [shuffled[i : i + size] for i in range(0, count, size)]
        return waiting[purpose].pop(0)

    for iteration in range(total):
        fall = (1 + math.cos(math.pi * iteration / total)) / 2
        rate = settings["learning_rate"] * fall
        if iteration % settings["forget_every"] == 0:
            rows = following("forget order", FORGET, 4)
            x, y = forget.x.numpy()[rows], forget.y.numpy()[rows]
            found = softmax(net.logits(x))
            weights = [(-math.log(row[label])) ** -settings["loss_power"] for row, label in zip(found, y, strict=True)]
            share = np.array(weights)[:, None] / sum(weights)
            ascent = -settings["ascent_weight"] * fall * share * (found - one_hot(y, CLASSES))
            masked = [part * inside for part, inside in zip(net.gradients(x, ascent), mask, strict=True)]
            optimizer.step(clipped(masked, settings["clip_norm"]), rate)
        rows = following("order", RETAIN, 6)
        x, y = retain.x.numpy()[rows], retain.y.numpy()[rows]
        optimizer.step(net.gradients(x, net.entropy_gradient(x, y)), rate)
    return net


@pytest.mark.parametrize(
    "change",
    [
        {"momentum": 0.0, "weight_decay": 0.0, "clip_norm": 1e9},
        {},
        {"forget_every": 1, "loss_power": 0.0},
        {"loss_power": 2.0, "fisher_ratio": 0.5},
        {"fisher_ratio": 0.0, "clip_norm": 0.05},
    ],
    ids=["bare", "all", "unweighted, every iteration", "weighted, wide mask", "no mask, tight clip"],
)
def test_sfr_on_is_the_written_out_update(change: dict[str, Any]) -> None:
    settings = {
        "learning_rate": 0.03,
        "iterations": 13,
        "forget_every": 3,
        "ascent_weight": 5.0,
        "loss_power": 0.5,
        "fisher_ratio": 1.0,
        "clip_norm": 0.7,
        "momentum": 0.9,
        "weight_decay": 0.01,
        "batch_size": 6,
        "forget_batch_size": 4,
    } | change
    model = plain()
    assert largest_difference(run("sfr_on", model, **settings), slow_sfr_on(model, settings, seed=4)) < 1e-9


def test_fisher_is_the_mean_square_of_the_gradients_of_single_points() -> None:
    model, data = plain(), points(RETAIN, 2, torch.float64)
    for found, wanted in zip(diagonal_fisher(model, data), slow_fisher(SlowNet(model), data), strict=True):
        assert np.abs(found.numpy() - wanted).max() < 1e-14


def test_fisher_of_models_with_batch_norm_and_dropout_is_that_of_eval_mode() -> None:
    model, data = trained().double(), points(RETAIN, 2, torch.float64)
    wanted = looped_fisher(model, data)
    found = diagonal_fisher(model.train(), data)
    assert all((a - b).abs().max() < 1e-12 for a, b in zip(found, wanted, strict=True))
    assert max(float(part.max()) for part in wanted) > 1e-4
    assert all(module.training for module in model.modules())


def test_fisher_of_convolutions_on_bytes() -> None:
    model = make_model("resnet18", {"width": 2}).build((1, 8, 8), CLASSES, 0).eval()
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (5, 1, 8, 8), generator=generator, dtype=torch.uint8)
    data = TensorSet(images, torch.tensor([0, 1, 2, 0, 1]))
    for found, wanted in zip(diagonal_fisher(model, data), looped_fisher(model, data), strict=True):
        assert torch.allclose(found, wanted, rtol=1e-3, atol=1e-9)


def test_fisher_does_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = plain(), points(RETAIN, 2, torch.float64)
    whole = diagonal_fisher(model, data)
    monkeypatch.setattr(fisher, "ENTRIES", {"cpu": 0})
    cut = diagonal_fisher(model, data)
    assert all((a - b).abs().max() < 1e-15 for a, b in zip(whole, cut, strict=True))


def test_the_mask_compares_both_sets() -> None:
    model, forget, retain = plain(), points(FORGET, 1, torch.float64), points(RETAIN, 2, torch.float64)
    sizes = [sum(int(part.sum()) for part in fisher_mask(model, forget, retain, ratio)) for ratio in (0, 0.5, 1, 2)]
    assert sizes[0] == sum(weight.numel() for weight in model.parameters())
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 4
    assert all(bool(part.all()) for part in fisher_mask(model, forget, forget, 1.0))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_adaptive_weights_follow_the_loss_and_carry_no_gradient(power: float) -> None:
    generator = torch.Generator().manual_seed(0)
    output = torch.randn(6, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0, 1, 2, 3, 0, 1])
    loss = adaptive_entropy(output, y, power)
    each = [-math.log(softmax(output.detach().numpy())[i, label]) for i, label in enumerate(y.tolist())]
    weights = [value**-power for value in each]
    assert abs(loss.item() - sum(w * v for w, v in zip(weights, each, strict=True)) / sum(weights)) < 1e-12
    (gradient,) = torch.autograd.grad(loss, output)
    share = np.array(weights)[:, None] / sum(weights)
    wanted = share * (softmax(output.detach().numpy()) - one_hot(y.numpy(), 4))
    assert np.abs(gradient.numpy() - wanted).max() < 1e-12


def test_a_point_without_loss_does_not_silence_the_others() -> None:
    output = torch.tensor([[200.0, 0.0], [0.0, 0.5]], requires_grad=True)
    (gradient,) = torch.autograd.grad(adaptive_entropy(output, torch.tensor([0, 0]), 0.5), output)
    assert bool(torch.isfinite(gradient).all())
    assert gradient[1].abs().max() > 1e-5


def test_sfr_on_of_no_iterations_is_identity() -> None:
    model = trained()
    assert same_state(run("sfr_on", model, iterations=0), model)


def test_sfr_on_raises_the_loss_on_the_forget_set_more_than_on_the_retain_set() -> None:
    model, forget, retain = trained(), points(FORGET, 1), points(RETAIN, 2)
    found = run("sfr_on", model, iterations=40)
    rise = [
        (F.cross_entropy(found(each.x), each.y) - F.cross_entropy(model(each.x), each.y)).item()
        for each in (forget, retain)
    ]
    assert rise[0] > 0.1 and rise[0] > rise[1]
