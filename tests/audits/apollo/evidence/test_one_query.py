"""YOQO and OSLO: the loss, the bound and the models of their one crafted input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from audits.apollo.evidence import Group, Questions
from audits.apollo.evidence.oslo import FOOLED, LARGEST, fooling, surrogates
from audits.apollo.evidence.shadows import Shadows
from audits.apollo.evidence.yoqo import ALPHA, crafted_chunk, descent
from tests.audits.apollo.evidence.small_networks import CLASSES, models


def shadows_of_six() -> tuple[Shadows, torch.Tensor, torch.Tensor]:
    torch.manual_seed(5)
    inside = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=torch.bool)
    outside = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=torch.bool)
    shadows = Shadows(models(4, 1), models(4, 2), inside, (6,), outside)
    return shadows, torch.rand(3, 6, dtype=torch.float64), torch.tensor([0, 1, 2])


def test_yoqos_loss_and_gradient_are_the_papers() -> None:
    shadows, x, y = shadows_of_six()
    instead = torch.tensor([3, 4, 0])
    value, gradient = descent(shadows, shadows.models_for(torch.arange(3)), x, y, instead)
    for k in range(3):
        point = x[k : k + 1].clone().requires_grad_(True)
        inner = [F.cross_entropy(shadows.unlearned[i](point), y[k : k + 1]) for i in range(4) if shadows.inside[i, k]]
        outer = [
            F.cross_entropy(shadows.original[i](point), instead[k : k + 1]) for i in range(4) if shadows.never[i, k]
        ]
        loss = torch.stack(inner).mean() + ALPHA * torch.stack(outer).mean()
        assert abs(value[k] - loss.detach()) < 1e-12
        assert torch.allclose(gradient[k], torch.autograd.grad(loss, point)[0][0], rtol=0, atol=1e-12)


def test_yoqos_input_lowers_the_loss_stays_in_the_range_and_rests_where_it_is_low_enough() -> None:
    shadows, x, y = shadows_of_six()
    rows = torch.arange(3)
    moved, confidence = crafted_chunk(shadows, rows, x, y, (0.0, 1.0))
    assert moved.min() >= 0 and moved.max() <= 1 and not torch.equal(moved, x)
    for k in range(3):
        own = [shadows.original[i](moved[k : k + 1]).softmax(1)[0, y[k]] for i in range(4) if shadows.never[i, k]]
        assert abs(confidence[k] - torch.stack(own).mean()) < 1e-12
    certain = nn.Sequential(nn.Linear(6, CLASSES)).double().requires_grad_(False)
    wrong = nn.Sequential(nn.Linear(6, CLASSES)).double().requires_grad_(False)
    for model, label in ((certain, 0), (wrong, 1)):
        model[0].weight.zero_()
        model[0].bias.copy_(20.0 * F.one_hot(torch.tensor(label), CLASSES))
    settled = replace(shadows, original=[wrong] * 4, unlearned=[certain] * 4)
    assert torch.equal(crafted_chunk(settled, rows[:1], x[:1], y[:1], None)[0], x[:1])


def test_oslos_input_fools_the_validation_models_within_its_bound() -> None:
    torch.manual_seed(0)
    source, validation = models(3, 7), models(2, 7)
    x = torch.rand(8, 6, dtype=torch.float64)
    y = torch.stack([model(x).softmax(1) for model in source]).mean(0).argmax(1)
    ids = np.arange(8)
    asked = Questions(x, y, ids, ids, (6,), (0.0, 1.0), 0)
    moved, confidence = fooling(source, validation, asked, torch.arange(8))
    seen = torch.stack([model(moved).softmax(1) for model in validation]).mean(0).gather(1, y[:, None])[:, 0]
    assert torch.allclose(confidence, seen, rtol=0, atol=1e-12)
    assert (moved - x).abs().max() <= LARGEST + 1e-12
    assert moved.min() >= 0 and moved.max() <= 1
    reached = (moved - x).abs().amax(1)
    assert (confidence < FOOLED).any()
    assert (reached[confidence >= FOOLED] > LARGEST * 0.99).all(), "who is not fooled was tried at the largest bound"


def test_oslo_validates_on_shadows_that_were_not_attacked() -> None:
    none = np.zeros((8, 3), dtype=bool)
    for count, held in ((8, 2), (4, 1), (2, 1)):
        source, validation = surrogates(Group(models(count, 0), [], none[:count], ~none[:count]))
        assert len(validation) == held and not {*map(id, source)} & {*map(id, validation)}
        assert len(source) + len(validation) == count
    source, validation = surrogates(Group(models(1, 0), [], none[:1], ~none[:1]))
    assert source == validation
