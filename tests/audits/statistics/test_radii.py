"""Estimated radii of Theorems III.3 and III.4: exact on a linear model, and against slow forms on a small network."""

import numpy as np
import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.statistics import radii


class Line(nn.Module):
    """Two classes with logits ±w·x/2: the margin of class 0 is w·x exactly."""

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight, dtype=torch.float64))

    def forward(self, x):
        half = x @ self.weight / 2
        return torch.stack([half, -half], dim=1)


X = torch.tensor([[3.0, 4.0], [1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
Y = torch.zeros(3, dtype=torch.int64)


def linear(unlearned, retrained):
    return radii.radius_intervals(Line([2.0, 0.0]), Line(unlearned), Line(retrained), X, Y, radius=0.5, samples=4)


def test_on_a_linear_model_every_part_is_exact():
    found = linear([2.0, 0.5], [2.0, 1.0])
    np.testing.assert_allclose(found.margin, [6.0, 2.0, -2.0], atol=1e-12)
    np.testing.assert_allclose(found.lipschitz_input, [2.0, 2.0, 2.0], atol=1e-12)  # ‖w‖ everywhere
    np.testing.assert_allclose(found.lipschitz_parameters, [5.0, 1.0, 1.0], atol=1e-12)  # ‖x‖
    low, high = (6 - 5 * 1.0) / 2, (6 - 5 * 0.5) / 2
    np.testing.assert_allclose(found.under[0], [low, high], atol=1e-12)
    np.testing.assert_allclose(found.under[1], [(2 - 1.0) / 2, (2 - 0.5) / 2], atol=1e-12)
    assert found.under[2].isnan().all()  # misclassified from the start: no radius


def test_under_and_over_exclude_each_other_and_change_places():
    less, more = linear([2.0, 0.5], [2.0, 1.0]), linear([2.0, 1.0], [2.0, 0.5])
    assert less.over.isnan().all() and more.under.isnan().all()
    torch.testing.assert_close(less.under, more.over, equal_nan=True)
    same = linear([2.0, 1.0], [1.0, 0.0])
    assert same.under.isnan().all() and same.over.isnan().all()


def test_the_lower_end_is_never_negative():
    found = linear([2.0, 0.1], [2.0, 9.0])
    assert found.under[0, 0] == 0.0 < found.under[0, 1]


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3)).double()


def slow_margin(model, point, label):
    logits = model(point[None])[0]
    return logits[label] - max(logits[other] for other in range(3) if other != label)


def test_gradients_equal_one_point_at_a_time():
    model = network(0).eval()
    x, y = torch.randn(5, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)), torch.arange(5) % 3
    at_x, across = [], []
    for point, label in zip(x, y, strict=True):
        free = point.clone().requires_grad_()
        at_x.append(torch.autograd.grad(slow_margin(model, free, label), free)[0].norm())
        slopes = torch.autograd.grad(slow_margin(model, point, label), list(model.parameters()))
        across.append(torch.cat([slope.flatten() for slope in slopes]).norm())
    torch.testing.assert_close(radii.parameter_lipschitz(model, x, y), torch.stack(across))
    near = radii.input_lipschitz(model, x, y, radius=1e-9, samples=1, seed=0, chunk=2)
    torch.testing.assert_close(near, torch.stack(at_x), rtol=1e-6, atol=1e-8)


def test_a_wider_ball_with_the_same_draws_finds_no_smaller_slope_than_x_itself():
    model = network(2).eval()
    x, y = torch.randn(20, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3)), torch.arange(20) % 3
    at_x = radii.input_lipschitz(model, x, y, radius=1e-12, samples=1, seed=0)
    ball = radii.input_lipschitz(model, x, y, radius=1.0, samples=16, seed=0)
    assert (ball >= at_x - 1e-9).all() and (ball > at_x + 1e-6).any()
    more = radii.input_lipschitz(model, x, y, radius=1.0, samples=32, seed=0)
    assert (more >= ball).all()
    assert torch.equal(ball, radii.input_lipschitz(model, x, y, radius=1.0, samples=16, seed=0))


def test_distance_is_over_all_parameters_and_refuses_other_architectures():
    first, second = network(0), network(1)
    slow = sum(((a - b) ** 2).sum() for a, b in zip(first.parameters(), second.parameters(), strict=True)) ** 0.5
    assert radii.distance(first, second) == pytest.approx(slow.item())
    with pytest.raises(BadInput, match="two models of the same parameters"):
        radii.distance(first, Line([1.0, 2.0]))
    with pytest.raises(BadInput, match="allowed: above 0 and at least 1"):
        radii.radius_intervals(first, first, first, X, Y, radius=0.0)
