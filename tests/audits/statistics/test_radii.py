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


class Walled(Line):
    """The same margin, less a steep wall that begins .9 above the first point: no ball of radius .5 meets it."""

    def forward(self, x):
        wall = 20.0 * (x[:, 1:] - X[0, 1] - 0.9).clamp(min=0.0) / 2
        return super().forward(x) + torch.cat([-wall, wall], dim=1)


def first_flip(model, way, radii):
    """Return the smallest of ``radii`` at which the label of the first point is not 0 along the unit vector ``way``."""
    points = X[:1] + torch.tensor(radii)[:, None] * torch.as_tensor(way) / torch.as_tensor(way).norm()
    wrong = [radius for radius, label in zip(radii, model(points).argmax(1), strict=True) if label != 0]
    return min(wrong, default=float("nan"))


STEPS = [0.25 * step for step in range(1, 11)]
LESS, MORE = [1.7, -0.4], [1.4, -0.8]  # [2, 0] less .5 and 1 along x / ‖x‖: where the margin at x = (3, 4) falls most


def test_a_flip_of_the_unlearned_model_inside_an_interval_speaks_against_under_and_for_over():
    """By hand: m = 6, L_x = 2, L_θ = 5. Δ = .5 lets a model keep y below 1.75, Δ = 1 below .5."""
    away = [-1.7, 0.4]
    for build in (Line, Walled):
        models = build([2.0, 0.0]), build(LESS), build(MORE)
        found = radii.radius_intervals(*models, X, Y, radius=0.5, samples=16)
        np.testing.assert_allclose(found.under[0], [0.5, 1.75], atol=1e-12)
        assert found.over[0].isnan().all()
    span, kept, broken = found.under[:1], first_flip(Line(LESS), away, STEPS), first_flip(Walled(LESS), [0, 1.0], STEPS)
    assert (kept, broken) == (2.25, 1.25), "margin 3.5 falls by 1.746 a unit; the wall takes 20.4 a unit from .9 on"
    assert first_flip(Line(MORE), away, STEPS) == 0.75, "the retrained model has left y inside the interval"
    assert radii.answers("under", span, [kept], [True]) == "expected"
    assert radii.answers("under", span, [broken], [True]) == "refuted"
    over = radii.radius_intervals(Line([2.0, 0.0]), Line(MORE), Line(LESS), X, Y, radius=0.5).over[:1]
    np.testing.assert_allclose(over[0], [0.5, 1.75], atol=1e-12)
    assert radii.answers("over", over, [first_flip(Line(MORE), away, STEPS)], [True]) == "expected"


def test_answers_at_the_ends_and_where_nothing_was_asked():
    span = [[0.5, 1.75]] * 5 + [[np.nan, np.nan]]
    flip = [0.25, 0.5, 1.75, 2.0, np.nan, 1.0]
    under = radii.answers("under", span, flip, [True] * 6).tolist()
    assert under == ["refuted", "refuted", "expected", "expected", "expected", ""]
    over = radii.answers("over", span, flip, [True] * 6).tolist()
    assert over == ["refuted", "expected", "open", "open", "open", ""]
    unasked = radii.answers("under", span, flip, [False] * 6).tolist()
    assert unasked == ["refuted", "refuted", "open", "open", "open", ""]
    assert radii.answers("over", [[0.0, 1.0]], [0.0], [True]) == "expected", "at the point itself"
