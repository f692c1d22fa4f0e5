"""Gradient ascent against the update written out in NumPy, and its two cosine schedules."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.seeds import derive_seed
from tests.audits.unlearning.cases import FORGET, plain, points, run, same_state, trained
from tests.cases.slow_net import SlowNet, SlowSGD, clipped, largest_difference


def slow_ascent(model: nn.Module, settings: dict[str, Any], seed: int) -> SlowNet:
    """Return the network after gradient ascent with an update a batch and a cosine step an epoch, in NumPy."""
    net, data = SlowNet(model), points(FORGET, 1, torch.float64)
    x, y = data.x.numpy(), data.y.numpy()
    optimizer = SlowSGD(net, settings["momentum"], settings["weight_decay"])
    order = torch.Generator().manual_seed(derive_seed(seed, "order"))
    for epoch in range(settings["epochs"]):
        rate = settings["learning_rate"] * (1 + math.cos(math.pi * epoch / settings["epochs"])) / 2
        shuffled = torch.randperm(FORGET, generator=order).numpy()
        for rows in (shuffled[:4], shuffled[4:8], shuffled[8:]):
            ascent = [-part for part in net.gradients(x[rows], net.entropy_gradient(x[rows], y[rows]))]
            optimizer.step(clipped(ascent, settings["clip_norm"]), rate)
    return net


@pytest.mark.parametrize(
    "change",
    [
        {"clip_norm": 1e9, "momentum": 0.0, "weight_decay": 0.0},
        {"clip_norm": 0.1, "momentum": 0.0, "weight_decay": 0.0},
        {"clip_norm": 1e9, "momentum": 0.9, "weight_decay": 0.05},
        {"clip_norm": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "epochs": 5},
    ],
    ids=["bare", "clip", "momentum and decay", "all"],
)
def test_gradient_ascent_is_the_written_out_update(change: dict[str, Any]) -> None:
    settings = {"learning_rate": 0.05, "epochs": 3, "batch_size": 4} | change
    model = plain()
    assert largest_difference(run("gradient_ascent", model, **settings), slow_ascent(model, settings, seed=4)) < 1e-10


def test_parity_steps_the_cosine_a_batch_and_so_differs() -> None:
    model = plain()
    ours, parity = (run("gradient_ascent", model, schedule_per_batch=flag) for flag in (False, True))
    assert not same_state(ours, parity)


def test_with_one_batch_an_epoch_both_schedules_agree() -> None:
    model = plain()
    ours, parity = (run("gradient_ascent", model, batch_size=64, schedule_per_batch=flag) for flag in (False, True))
    assert same_state(ours, parity)


def test_gradient_ascent_of_no_epochs_is_identity() -> None:
    model = trained()
    assert same_state(run("gradient_ascent", model, epochs=0), run("identity", model))
    assert same_state(run("identity", model), model)


def test_gradient_ascent_raises_the_loss_on_the_forget_set() -> None:
    model, forget = trained(), points(FORGET, 1)
    found = run("gradient_ascent", model)
    before, after = (F.cross_entropy(each(forget.x), forget.y).item() for each in (model, found))
    assert after > before + 0.01


def test_gradient_ascent_freezes_batch_norm_statistics_but_not_its_weights() -> None:
    model = trained()
    found = run("gradient_ascent", model, clip_norm=10.0)
    for old, new in zip(model.modules(), found.modules(), strict=True):
        if isinstance(old, nn.BatchNorm1d):
            assert torch.equal(old.running_mean, new.running_mean) and torch.equal(old.running_var, new.running_var)
            assert old.num_batches_tracked == new.num_batches_tracked
            assert not torch.equal(old.weight, new.weight)
