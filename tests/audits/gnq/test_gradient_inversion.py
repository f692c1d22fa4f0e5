"""Gradient inversion: the costs and searches against slow forms, what must come back, and what must not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, rosen, rosen_der
from torch import nn

from audits.errors import BadInput
from audits.gnq.gradient_inversion import matching
from audits.gnq.gradient_inversion.assignment import in_order
from audits.gnq.gradient_inversion.first_layer import first_layer_inputs
from audits.gnq.gradient_inversion.gradients import mean_of, noise_like, point_gradients, squared_norm
from audits.gnq.gradient_inversion.labels import inferred_labels
from audits.gnq.gradient_inversion.matching import reconstruct
from audits.gnq.gradient_inversion.quasi_newton import minimised
from audits.gnq.gradient_inversion.settings import GradientInversionSettings
from audits.gnq.inversion import mse
from audits.models import make_model

SHAPE, CLASSES = (1, 12, 11), 3
RANGE = (0.0, 1.0)
MODELS = {"mlp": {"hidden": [9]}, "cnn": {"channels": [2, 3], "hidden": 5}}


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def model_of(name: str) -> nn.Module:
    return make_model(name, MODELS[name]).build(SHAPE, CLASSES, 1).double()


def smooth() -> nn.Module:
    """Return a small network without kinks, with weights as large as DLG's authors draw them."""
    model = nn.Sequential(
        nn.Conv2d(1, 4, 5, stride=2, padding=2), nn.Sigmoid(), nn.Conv2d(4, 4, 5, padding=2), nn.Sigmoid(),
        nn.Flatten(), nn.Linear(4 * 6 * 6, CLASSES),
    ).double()  # fmt: skip
    with torch.no_grad():
        for place, weight in enumerate(model.parameters()):
            weight.copy_(drawn(*weight.shape, seed=place) - 0.5)
    return model


def slow_gradient(model: nn.Module, x: torch.Tensor, y: torch.Tensor, graph: bool = False) -> list[torch.Tensor]:
    loss = nn.functional.cross_entropy(model(x), y)
    return list(torch.autograd.grad(loss, list(model.parameters()), create_graph=graph))


def slow_cost(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, target: list[torch.Tensor], method: str, tv: float
) -> torch.Tensor:
    """Return the cost of one problem from one long vector of numbers."""
    a = torch.cat([part.flatten() for part in slow_gradient(model, x, y, graph=True)])
    b = torch.cat([part.flatten() for part in target])
    if method == "dlg":
        return (a - b).square().sum() / b.square().sum()
    varied = (x[:, :, 1:] - x[:, :, :-1]).abs().sum() + (x[:, :, :, 1:] - x[:, :, :, :-1]).abs().sum()
    return 1 - (a @ b) / (a.norm() * b.norm()) + tv * varied / x.numel()


def problems(model: nn.Module, batch: int, count: int = 3) -> tuple[torch.Tensor, torch.Tensor, dict, torch.Tensor]:
    """Return points, labels (P, B), the mean gradients of the batches, and inputs (P, B, …) to ask about."""
    x = drawn(count * batch, *SHAPE, seed=3)
    y = torch.arange(count * batch) % CLASSES
    places = torch.arange(count * batch).reshape(count, batch)
    return x, y[places], mean_of(point_gradients(model, x, y, chunk=2), places), drawn(count, batch, *SHAPE, seed=4)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_points_and_batches_are_those_of_plain_autograd(name: str) -> None:
    model = model_of(name)
    x, y, means, _ = problems(model, 2)
    for place, batch in enumerate(y):
        slow = slow_gradient(model, x[2 * place : 2 * place + 2], batch)
        for part, (key, _) in zip(slow, model.named_parameters(), strict=True):
            torch.testing.assert_close(means[key][place], part, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("method", ["dlg", "geiping"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_the_cost_and_its_gradient_are_those_of_one_problem_at_a_time(name: str, batch: int, method: str) -> None:
    model, settings = model_of(name), GradientInversionSettings(tv=0.3)
    _, y, means, asked = problems(model, batch)
    slopes, values = matching.costs(model, means, y, method, settings)(asked)
    for place in range(len(y)):
        x = asked[place].clone().requires_grad_(True)
        target = [means[key][place] for key, _ in model.named_parameters()]
        value = slow_cost(model, x, y[place], target, method, settings.tv)
        torch.testing.assert_close(values[place], value, rtol=1e-10, atol=0)
        torch.testing.assert_close(slopes[place], *torch.autograd.grad(value, x), rtol=1e-8, atol=1e-13)


def test_the_search_by_signs_is_that_of_one_problem_at_a_time() -> None:
    model = model_of("cnn")
    settings = GradientInversionSettings(steps=9, learning_rate=0.1, tv=0.01)
    _, y, means, _ = problems(model, 2)
    found = reconstruct(model, means, y, SHAPE, "geiping", settings, seed=5, chunk=4)
    alone = reconstruct(model, {k: v[1:2] for k, v in means.items()}, y[1:2], SHAPE, "geiping", settings, seed=5)
    torch.testing.assert_close(found.images[1:2], alone.images, rtol=0, atol=1e-12)
    (start,) = matching.starts((2, *SHAPE), 1, 5, RANGE)
    x = start.clone().requires_grad_(True)
    target = [means[key][1] for key, _ in model.named_parameters()]
    first, second, kept = torch.zeros_like(x), torch.zeros_like(x), []
    for step in range(10):
        cost = slow_cost(model, x, y[1], target, "geiping", settings.tv)
        kept.append((float(cost.detach()), x.detach().clone()))
        slope = torch.autograd.grad(cost, x)[0].sign()
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = 0.1 * 0.1 ** sum(step >= round(share * 9) for share in (3 / 8, 5 / 8, 7 / 8))
        move = rate * (first / (1 - 0.9 ** (step + 1))) / ((second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)
        x = (x.detach() - move).clamp(0, 1).requires_grad_(True)
    least, image = min(kept, key=lambda each: each[0])
    assert float(found.cost[1]) == pytest.approx(least, rel=1e-9)
    torch.testing.assert_close(found.images[1], image, rtol=0, atol=1e-9)


def test_l_bfgs_in_lockstep_finds_each_minimum_and_problems_do_not_meet() -> None:
    begin = 2 * drawn(5, 4, seed=8) - 1

    def evaluate(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            torch.tensor([rosen(row) for row in x.numpy()]),
            torch.tensor(np.stack([rosen_der(row) for row in x.numpy()])),
        )

    found, cost = minimised(evaluate, begin, 80)
    alone, _ = minimised(evaluate, begin[3:4], 80)
    torch.testing.assert_close(alone[0], found[3], rtol=0, atol=1e-12)
    for place in range(5):
        told = minimize(rosen, begin[place].numpy(), jac=rosen_der, method="L-BFGS-B")
        assert float(cost[place]) < max(10 * told.fun, 1e-8)
    worst = [minimised(evaluate, begin, steps)[1] for steps in range(8)]
    assert all((later <= earlier).all() for earlier, later in pairwise(worst))


def test_a_cost_that_is_nowhere_finite_leaves_the_search_where_it_starts() -> None:
    begin = drawn(2, 3)
    found, _ = minimised(lambda x: (torch.full((len(x),), torch.inf), torch.ones_like(x)), begin, 30)
    assert torch.equal(found, begin)


def test_a_first_fully_connected_layer_tells_its_input_exactly() -> None:
    model = model_of("mlp")
    x, y, alone, _ = problems(model, 1, count=6)
    found = reconstruct(model, alone, y, SHAPE, "analytic", seed=0)
    torch.testing.assert_close(found.images[:, 0], x, rtol=0, atol=1e-9)
    silent = {name: torch.zeros_like(each[:1]) for name, each in alone.items()}
    assert (first_layer_inputs(model, silent, SHAPE, RANGE) == 0.5).all()
    mixed = {name: each.mean(0, keepdim=True) for name, each in alone.items()}
    assert mse(first_layer_inputs(model, mixed, SHAPE, RANGE), x).min() > 1e-3


@pytest.mark.long
def test_a_smooth_network_gives_the_image_to_dlg_and_the_gradient_of_another_point_gives_that_one() -> None:
    model = smooth()
    x, y = drawn(2, *SHAPE, seed=9), torch.tensor([0, 0])
    own = point_gradients(model, x, y)
    and_swapped = {name: each[[0, 1, 1, 0]] for name, each in own.items()}
    settings = GradientInversionSettings(steps=150)
    images = reconstruct(model, and_swapped, y[[0, 1, 0, 1], None], SHAPE, "dlg", settings, seed=1).images[:, 0]
    found, control = images[:2], images[2:]
    untrained = mse(matching.starts(SHAPE, 1, 1, RANGE), x)
    assert (mse(found, x) < 0.02 * untrained).all()
    assert (mse(control, x) > 0.5 * untrained).all()
    assert (mse(control, x[[1, 0]]) < 0.02 * untrained).all()


@pytest.mark.parametrize("bias", [True, False])
def test_the_label_of_a_single_point_is_read_off_its_gradient(bias: bool) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(132, 8), nn.Tanh(), nn.Linear(8, CLASSES, bias=bias)).double()
    x, y = drawn(12, *SHAPE), torch.arange(12) % CLASSES
    assert torch.equal(inferred_labels(model, point_gradients(model, x, y)), y)
    with pytest.raises(BadInput, match="give the labels"):
        inferred_labels(nn.Sequential(model, nn.PReLU()), point_gradients(model, x, y))


def test_reconstructions_of_a_batch_are_put_in_the_order_that_fits_best() -> None:
    images = drawn(2, 4, *SHAPE)
    shuffled = torch.stack([images[0, [2, 0, 3, 1]], images[1, [1, 0, 2, 3]]]) + 0.01
    torch.testing.assert_close(in_order(shuffled, images), images + 0.01)


def test_noise_has_the_norm_of_each_gradient_and_nothing_else_of_it() -> None:
    model = model_of("cnn")
    own = point_gradients(model, drawn(3, *SHAPE), torch.arange(3))
    noise = noise_like(own, torch.Generator().manual_seed(0))
    torch.testing.assert_close(squared_norm(noise), squared_norm(own))
    products = sum((noise[name] * own[name]).flatten(1).sum(1) for name in own)
    assert (products.abs() < 0.2 * squared_norm(own)).all()


def test_of_several_starts_the_one_of_least_cost_counts() -> None:
    model = model_of("cnn")
    _, y, means, _ = problems(model, 1)
    three = reconstruct(model, means, y, SHAPE, "dlg", GradientInversionSettings(steps=5, starts=3), seed=0)
    single = reconstruct(model, means, y, SHAPE, "dlg", GradientInversionSettings(steps=5), seed=0)
    assert (three.cost <= single.cost).all() and (three.cost < single.cost).any()


def test_what_cannot_be_inverted_is_refused() -> None:
    model = model_of("cnn")
    _, y, means, _ = problems(model, 2)
    with pytest.raises(BadInput, match="method is 'idlg'; allowed: analytic, dlg, geiping"):
        reconstruct(model, means, y, SHAPE, "idlg", seed=0)
    with pytest.raises(BadInput, match="batches have 2 points"):
        reconstruct(model, means, y, SHAPE, "analytic", seed=0)
    with pytest.raises(BadInput, match="use an mlp, or dlg or geiping"):
        reconstruct(model, means, y[:, :1], SHAPE, "analytic", seed=0)
    with pytest.raises(BadInput, match="one row for each of the 2 problems"):
        reconstruct(model, means, y[:2], SHAPE, "dlg", seed=0)
    with pytest.raises(BadInput, match="label 7 is out of range"):
        reconstruct(model, means, y + 5, SHAPE, "dlg", seed=0)
    for field, value in (("steps", -1), ("starts", 0), ("tv", -0.1), ("learning_rate", 0.0)):
        with pytest.raises(BadInput, match=f"gradient_inversion.{field} is"):
            GradientInversionSettings(**{field: value})
