"""Fine-tuning against the update written out in NumPy."""

from __future__ import annotations

import math

import pytest
import torch

from audits.seeds import derive_seed
from tests.audits.unlearning.cases import RETAIN, plain, points, run, trained
from tests.cases.slow_net import SlowNet, SlowSGD, largest_difference


def test_finetuning_moves_batch_norm_statistics() -> None:
    model = trained()
    found = run("finetune", model)
    assert not torch.equal(model.get_buffer("3.running_mean"), found.get_buffer("3.running_mean"))


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_finetuning_is_the_written_out_update(schedule: str) -> None:
    model, data = plain(), points(RETAIN, 2, torch.float64)
    settings = {"learning_rate": 0.05, "epochs": 4, "batch_size": 8, "momentum": 0.9, "weight_decay": 0.01}
    net = SlowNet(model)
    optimizer = SlowSGD(net, 0.9, 0.01)
    order = torch.Generator().manual_seed(derive_seed(4, "order"))
    x, y = data.x.numpy(), data.y.numpy()
    for epoch in range(4):
        rate = 0.05 * ((1 + math.cos(math.pi * epoch / 4)) / 2 if schedule == "cosine" else 1.0)
        shuffled = torch.randperm(RETAIN, generator=order).numpy()
        for rows in (shuffled[:8], shuffled[8:16], shuffled[16:]):
            optimizer.step(net.gradients(x[rows], net.entropy_gradient(x[rows], y[rows])), rate)
    assert largest_difference(run("finetune", model, schedule=schedule, **settings), net) < 1e-10
