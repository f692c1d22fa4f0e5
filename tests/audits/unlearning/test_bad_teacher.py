"""Bad teaching is the written-out update towards two teachers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.models import make_model
from audits.seeds import derive_seed
from audits.unlearning import make_unlearner
from audits.unlearning.distillation import divergence, teacher_logits
from tests.audits.unlearning.cases import CLASSES, FEATURES, FORGET, RETAIN, build, plain, points, run, trained
from tests.cases.slow_net import Floats, SlowNet, SlowSGD, largest_difference, softmax


def fresh(seed: int) -> nn.Module:
    return make_model("mlp", {"hidden": [8]}).build((FEATURES,), CLASSES, seed)


def slow_teaching(model: nn.Module, settings: dict[str, Any], seed: int) -> SlowNet:
    """Return the network after the epochs, in NumPy: ∂KL_T·T²/∂logits = T·(softmax(student/T) − softmax(teacher/T))."""
    net, good, bad = SlowNet(model), SlowNet(model), SlowNet(fresh(derive_seed(seed, "teacher")))
    forget, retain = points(FORGET, 1, torch.float64).x.numpy(), points(RETAIN, 2, torch.float64).x.numpy()
    x = np.concatenate([retain, forget])
    teacher = np.concatenate([good.logits(retain), bad.logits(forget)])
    temperature, optimizer = settings["temperature"], SlowSGD(net, settings["momentum"], settings["weight_decay"])
    order = torch.Generator().manual_seed(derive_seed(seed, "order"))

    def at_logits(rows: Floats) -> Floats:
        gap = softmax(net.logits(x[rows]) / temperature) - softmax(teacher[rows] / temperature)
        return temperature * gap / len(rows) / (CLASSES if settings["mean_over_classes"] else 1)

    for epoch in range(settings["epochs"]):
        rate = settings["learning_rate"] * (1 + math.cos(math.pi * epoch / settings["epochs"])) / 2
        shuffled = torch.randperm(FORGET + RETAIN, generator=order).numpy()
        for rows in (shuffled[:8], shuffled[8:16], shuffled[16:24], shuffled[24:]):
            optimizer.step(net.gradients(x[rows], at_logits(rows)), rate)
    return net


@pytest.mark.parametrize("mean_over_classes", [False, True], ids=["per point", "per class too"])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_bad_teaching_is_the_written_out_update(temperature: float, mean_over_classes: bool) -> None:
    settings = {
        "learning_rate": 0.1,
        "epochs": 4,
        "temperature": temperature,
        "batch_size": 8,
        "momentum": 0.9,
        "weight_decay": 0.01,
        "mean_over_classes": mean_over_classes,
    }
    model, method = plain(), make_unlearner("bad_teacher", settings)
    forget, retain = points(FORGET, 1, torch.float64), points(RETAIN, 2, torch.float64)
    found = method.unlearn(model, forget, retain, seed=4, build=fresh)
    assert largest_difference(found, slow_teaching(model, settings, seed=4)) < 1e-10


def test_the_student_nears_the_random_teacher_on_the_forget_set() -> None:
    model, forget = trained(), points(FORGET, 1)
    teacher = teacher_logits(build(derive_seed(4, "teacher")), forget)
    found = run("bad_teacher", model, epochs=20)
    before, after = (divergence(each(forget.x), teacher, 1.0).item() for each in (model, found))
    assert after < before / 2


def test_labels_decide_nothing() -> None:
    model, method = trained(), make_unlearner("bad_teacher", {"epochs": 2})
    forget, retain = points(FORGET, 1), points(RETAIN, 2)
    first = method.unlearn(model, forget, retain, seed=0, build=build)
    forget.y.zero_()
    retain.y.zero_()
    second = method.unlearn(model, forget, retain, seed=0, build=build)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_bad_teaching_needs_the_architecture() -> None:
    with pytest.raises(BadInput, match="bad_teacher needs the target's architecture"):
        make_unlearner("bad_teacher", {}).unlearn(trained(), points(3, 1), points(9, 2), seed=0)
