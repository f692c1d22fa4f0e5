"""SCRUB against the updates written out in NumPy: its divergence, its teacher, a whole run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.seeds import derive_seed
from audits.unlearning import make_unlearner
from audits.unlearning.distillation import divergence, teacher_logits
from tests.audits.unlearning.cases import CLASSES, FORGET, RETAIN, plain, points, run, trained
from tests.cases.slow_net import SlowAdam, SlowNet, SlowSGD, largest_difference, one_hot, softmax


@pytest.mark.parametrize("temperature", [1.0, 4.0, 0.5])
def test_the_divergence_is_kl_of_original_and_student_by_definition(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(7, 5, generator=generator, dtype=torch.float64) * 3 for _ in range(2))
    total = 0.0
    for s, t in zip(student.tolist(), teacher.tolist(), strict=True):
        p = [math.exp(value / temperature) for value in t]
        q = [math.exp(value / temperature) for value in s]
        p, q = [value / sum(p) for value in p], [value / sum(q) for value in q]
        total += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    wanted = total / 7 * temperature**2
    assert abs(divergence(student, teacher, temperature).item() - wanted) < 1e-12
    assert divergence(teacher, teacher, temperature).abs().item() < 1e-12


def test_teacher_logits_are_the_floats_of_the_model_in_eval_mode() -> None:
    model = trained()
    data = points(RETAIN, 2)
    wanted = model(data.x).detach()
    model.train()
    found = teacher_logits(model, data)
    assert found.dtype == torch.float32 and not found.requires_grad
    assert torch.equal(found, wanted)
    assert not torch.equal(found, found.round())
    assert model.training


def slow_scrub(model: nn.Module, settings: dict[str, Any], seed: int) -> SlowNet:
    """Return the network after SCRUB, in NumPy: ∂KL_T·T²/∂logits = T·(softmax(student/T) − softmax(teacher/T))."""
    net, teacher = SlowNet(model), SlowNet(model)
    forget, retain = points(FORGET, 1, torch.float64), points(RETAIN, 2, torch.float64)
    temperature, decay = settings["temperature"], settings["weight_decay"]
    optimizer: SlowAdam | SlowSGD = SlowAdam(net, decay)
    if settings["optimizer"] == "sgd":
        optimizer = SlowSGD(net, settings["momentum"], decay)
    order = torch.Generator().manual_seed(derive_seed(seed, "order"))

    def away(x: np.ndarray) -> np.ndarray:
        gap = softmax(net.logits(x) / temperature) - softmax(teacher.logits(x) / temperature)
        return temperature * gap / len(x)

    start = [weight.copy() for weight in net.weights]

    def pull() -> list[np.ndarray]:
        gaps = [weight - first for weight, first in zip(net.weights, start, strict=True)]
        return [settings["smoothing"] * gap / (np.sqrt((gap**2).sum()) or 1.0) for gap in gaps]

    def step(gradients: list[np.ndarray], epoch: int) -> None:
        rate = settings["learning_rate"]
        for last in settings["decay_epochs"]:
            if epoch + 1 > last:  # epochs are counted from 1 there
                rate *= settings["decay_rate"]
        optimizer.step([one + two for one, two in zip(gradients, pull(), strict=True)], rate)

    for epoch in range(settings["epochs"]):
        if epoch < settings["ascent_epochs"]:
            shuffled = torch.randperm(FORGET, generator=order).numpy()
            for rows in (shuffled[:4], shuffled[4:8], shuffled[8:]):
                x = forget.x.numpy()[rows]
                step(net.gradients(x, -away(x)), epoch)
        shuffled = torch.randperm(RETAIN, generator=order).numpy()
        for rows in (shuffled[:8], shuffled[8:16], shuffled[16:]):
            x, y = retain.x.numpy()[rows], retain.y.numpy()[rows]
            entropy = (softmax(net.logits(x)) - one_hot(y, CLASSES)) / len(x)
            at_logits = settings["gamma"] * entropy + settings["alpha"] * away(x)
            step(net.gradients(x, at_logits), epoch)
    return net


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"optimizer": "sgd", "learning_rate": 0.05},
        {"alpha": 0.7, "temperature": 1.5},
        {"ascent_epochs": 0},
        {"decay_epochs": [1, 3, 3], "decay_rate": 0.5},
        {"smoothing": 0.5, "optimizer": "sgd", "learning_rate": 0.05},
    ],
    ids=["adam", "sgd", "strong teacher", "no ascent", "falling rate", "smoothing"],
)
def test_a_run_of_scrub_is_the_written_out_one(change: dict[str, Any]) -> None:
    settings = {
        "learning_rate": 0.01,
        "epochs": 4,
        "ascent_epochs": 2,
        "gamma": 0.99,
        "alpha": 0.001,
        "temperature": 4.0,
        "batch_size": 8,
        "forget_batch_size": 4,
        "optimizer": "adam",
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "decay_epochs": [],
        "decay_rate": 0.1,
        "smoothing": 0.0,
    } | change
    # Student and teacher agree at the start, so the first ascent follows the weight decay alone; without it Adam would
    # divide rounding by rounding and no two implementations would agree.
    model = plain()
    assert largest_difference(run("scrub", model, **settings), slow_scrub(model, settings, seed=4)) < 1e-10


def test_epochs_behind_which_no_rate_can_fall_are_refused() -> None:
    with pytest.raises(BadInput, match=r"^scrub\.decay_epochs has 0; allowed: epochs, counted from 1$"):
        make_unlearner("scrub", {"decay_epochs": [5, 0]})
