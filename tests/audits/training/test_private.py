"""DP-SGD is the textbook's: each point's gradient is bounded, the noise has the stated size, epsilon is counted."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.seeds import derive_seed
from audits.training import accounting
from audits.training.accounting import delta_of, noise_of, spent, spent_epsilon, steps_per_epoch
from audits.training.engines import opacus as private_opacus
from audits.training.engines.base import Noise
from audits.training.engines.opacus import noisy, per_point
from audits.training.fit import fit
from audits.training.loop import EpochReport, accuracy
from audits.training.private import check_private
from audits.training.recipe import Recipe
from orchestrator.kinds import load_plan, plan_from
from tests.cases.families import as_one, thinned

POINTS, CLASSES = 21, 3
PLAIN = Recipe(optimizer="sgd", learning_rate=0.1, epochs=3, batch_size=8, weight_decay=0.01, momentum=0.9)
PRIVATE = replace(PLAIN, noise_multiplier=0.7, max_grad_norm=0.5)
OPACUS = replace(PRIVATE, private_engine="opacus")
UNBOUNDED = replace(PLAIN, noise_multiplier=0.0, max_grad_norm=1e9)
MODELS: dict[str, tuple[tuple[int, ...], dict[str, object]]] = {
    "mlp": ((6,), {"hidden": [9]}),
    "cnn": ((1, 8, 8), {"channels": [3, 4], "hidden": 5}),
    "resnet18": ((1, 16, 16), {"width": 2, "norm": "group"}),
}


def network(name: str = "mlp", seed: int = 1, **settings: object) -> nn.Module:
    shape, usual = MODELS[name]
    return make_model(name, {**usual, **settings}).build(shape, CLASSES, seed)


def points(name: str = "mlp", count: int = POINTS, dtype: torch.dtype = torch.float32) -> TensorSet:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(count, *MODELS[name][0], generator=generator, dtype=torch.float64).to(dtype)
    return TensorSet(x, torch.randint(CLASSES, (count,), generator=generator))


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([value.detach().double().flatten() for value in model.state_dict().values()])


# The computation


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, marks=[pytest.mark.long] * (name == "resnet18"))
        for change in ({}, {"optimizer": "adamw", "label_smoothing": 0.1, "schedule": "cosine"})
        for name in MODELS
    ],
)
def test_full_batches_without_noise_or_bound_are_plain_training(name: str, change: dict[str, object]) -> None:
    data = points(name, dtype=torch.float64)
    plain, bounded = (
        fit(network(name).double(), data, replace(recipe, batch_size=POINTS, **change), seed=3)
        for recipe in (PLAIN, UNBOUNDED)
    )
    assert float((weights(plain) - weights(bounded)).abs().max()) < 1e-6
    assert not torch.equal(weights(plain), weights(network(name)))


def slow_private_sgd(model: nn.Module, data: TensorSet, recipe: Recipe, seed: int) -> list[torch.Tensor]:
    """Return the weights after DP-SGD without noise or momentum, one point at a time."""
    values = [value.detach().clone() for value in model.parameters()]
    order = torch.Generator().manual_seed(derive_seed(seed, "order"))
    steps = math.ceil(len(data) / recipe.batch_size)
    for _ in range(recipe.epochs * steps):
        total = [torch.zeros_like(value) for value in values]
        for row in torch.nonzero(torch.rand(len(data), generator=order) < 1 / steps).flatten().tolist():
            leaves = [value.clone().requires_grad_() for value in values]
            hidden = torch.relu(data.x[row] @ leaves[0].T + leaves[1])
            loss = F.cross_entropy((hidden @ leaves[2].T + leaves[3])[None], data.y[row : row + 1])
            gradients = torch.autograd.grad(loss, leaves)
            norm = math.sqrt(sum(float(part.square().sum()) for part in gradients))
            bound = min(1.0, float(recipe.max_grad_norm or 0) / norm)
            total = [kept + bound * part for kept, part in zip(total, gradients, strict=True)]
        expected = len(data) / steps
        values = [
            value - recipe.learning_rate * (part / expected + recipe.weight_decay * value)
            for value, part in zip(values, total, strict=True)
        ]
    return values


@pytest.mark.parametrize("at_once", [64, 2])
def test_each_points_gradient_is_bounded_and_the_sum_is_over_the_expected_batch(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(private_opacus, "POINTS_AT_ONCE", at_once)
    recipe = replace(OPACUS, noise_multiplier=0.0, momentum=0.0)
    data, model = points(dtype=torch.float64), network().double()
    slow = slow_private_sgd(model, data, recipe, seed=4)
    fit(model, data, recipe, seed=4)
    for found, wanted in zip(model.parameters(), slow, strict=True):
        assert torch.allclose(found, wanted, rtol=0, atol=1e-6)


def one_step(sigma: float, seed: int, count: int = POINTS) -> torch.Tensor:
    """Return how far one step of size 1 over a full batch moves the 20 000 weights of a linear model."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 5000), nn.Linear(5000, CLASSES, bias=False))
    recipe = Recipe(
        optimizer="sgd", learning_rate=1.0, momentum=0.0, weight_decay=0.0, epochs=1, batch_size=count,
        noise_multiplier=sigma, max_grad_norm=0.5,
    )  # fmt: skip
    before = weights(model)
    return weights(fit(model, points(count=count), recipe, seed=seed)) - before


@pytest.mark.parametrize(("sigma", "count"), thinned([(1.0, 21), (3.0, 21), (1.0, 7)], [(3.0, 21)]))
def test_the_noise_is_normal_with_the_multiplier_times_the_bound_over_the_batch(sigma: float, count: int) -> None:
    noise = (one_step(sigma, 1, count) - one_step(0.0, 1, count)).numpy()
    stated = sigma * 0.5 / count
    assert len(noise) == 50_000
    assert abs(noise.mean()) < 5 * stated / math.sqrt(len(noise))
    assert abs(noise.std() / stated - 1) < 0.02
    assert abs(np.mean(np.abs(noise) < stated) - 0.6827) < 0.01
    assert abs(np.corrcoef(noise, (one_step(sigma, 2, count) - one_step(0.0, 2, count)).numpy())[0, 1]) < 0.03


def test_a_step_that_draws_no_point_is_noise_alone() -> None:
    model = network(hidden=[4000])
    before = weights(model)
    student = per_point(model)
    noise = Noise(0.7, 0.5, 8.0, torch.Generator().manual_seed(3))
    optimizer = noisy(torch.optim.SGD(model.parameters(), lr=1.0), noise)
    rows = torch.empty(0, dtype=torch.int64)
    loss = private_opacus.step(student, optimizer, points(), rows, OPACUS, torch.Generator())
    moved = weights(student.to_standard_module()) - before
    assert loss == 0.0
    assert abs(float(moved.std()) / (0.7 * 0.5 / 8) - 1) < 0.03


def test_tiny_sets_with_empty_draws_train(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    plain = private_opacus.step

    def watched(*arguments: object) -> float:
        drawn.append(len(arguments[3]))  # type: ignore[arg-type]  # the rows
        return plain(*arguments)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(private_opacus, "step", watched)
    fit(network(), points(count=3), replace(OPACUS, batch_size=1, epochs=20), seed=0)
    assert len(drawn) == 60
    assert 0 in drawn and max(drawn) > 1
    assert 30 < sum(drawn) < 90  # one point a step on average


# What surrounds it


def test_equal_seeds_give_equal_weights_whatever_the_global_generator() -> None:
    found = []
    for state, seed in ((1, 7), (2, 7), (1, 8)):
        torch.manual_seed(state)
        before = torch.get_rng_state()
        found.append(weights(fit(network(dropout=0.5), points(), PRIVATE, seed=seed)))
        assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize("recipe", [PRIVATE, OPACUS], ids=["fast", "opacus"])
@pytest.mark.parametrize("name", thinned(MODELS, ("mlp", "cnn")))
def test_nothing_of_the_engine_stays_on_the_model(name: str, recipe: Recipe) -> None:
    model = network(name)
    fresh = copy.deepcopy(model)
    fit(model, points(name), replace(recipe, epochs=1), seed=0)
    assert not model.training
    for after, before in zip(model.modules(), fresh.modules(), strict=True):
        assert vars(after).keys() == vars(before).keys()
        assert not after._forward_hooks and not after._backward_hooks
    for parameter, before in zip(model.parameters(), fresh.parameters(), strict=True):
        assert vars(parameter) == vars(before) == {}
        assert not torch.equal(parameter, before)
    copy.deepcopy(model)


@pytest.mark.parametrize("recipe", [PRIVATE, OPACUS], ids=["fast", "opacus"])
def test_nothing_is_said_on_the_terminal(
    recipe: Recipe, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(network("cnn"), points("cnn"), recipe, seed=0)
        spent_epsilon(replace(PRIVATE, noise_multiplier=1e3, batch_size=10), 10)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_observers_get_every_epoch_with_the_mean_loss_of_its_points() -> None:
    reports: list[EpochReport] = []
    frozen = replace(PRIVATE, learning_rate=1e-12, batch_size=POINTS)
    model = network()
    start = F.cross_entropy(model(points().x), points().y).item()
    fit(model, points(), frozen, seed=0, observers=(reports.append,))
    assert [(report.epoch, report.points) for report in reports] == [(0, POINTS), (1, POINTS), (2, POINTS)]
    assert all(abs(report.loss - start) < 1e-5 for report in reports)


@pytest.mark.long
def test_little_noise_lets_a_model_learn_and_much_does_not() -> None:
    x = points(count=60).x
    data = TensorSet(x, x[:, :CLASSES].argmax(1))
    recipe = replace(PRIVATE, epochs=60, learning_rate=0.1, max_grad_norm=1.0, batch_size=20)
    learned, drowned = (
        accuracy(fit(network(hidden=[30]), data, replace(recipe, noise_multiplier=sigma), seed=0), data)
        for sigma in (0.01, 30.0)
    )
    assert learned > 0.9 > 0.7 > drowned


def test_divergence_is_reported() -> None:
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        fit(network(), points(), replace(PRIVATE, learning_rate=3e38, weight_decay=10.0), seed=0)


def test_augmentation_works_on_the_points_drawn() -> None:
    plain, shifted = (
        fit(network("cnn"), points("cnn"), replace(PRIVATE, augment_shift=shift, flip=bool(shift)), seed=0)
        for shift in (0, 1)
    )
    assert not torch.equal(weights(plain), weights(shifted))


# What it costs


@pytest.mark.parametrize(("points_in_all", "batch", "steps"), [(100, 10, 10), (101, 10, 11), (7, 64, 1)])
def test_an_epoch_draws_every_point_once_on_average(points_in_all: int, batch: int, steps: int) -> None:
    assert steps_per_epoch(replace(PRIVATE, batch_size=batch), points_in_all) == steps


@pytest.mark.parametrize(
    ("sigma", "count", "epochs"), thinned([(0.8, 500, 3), (1.3, 640, 5), (2.0, 64, 4)], [(1.3, 640, 5), (2.0, 64, 4)])
)
def test_epsilon_is_what_opacus_counts_step_by_step(sigma: float, count: int, epochs: int) -> None:
    recipe = Recipe(
        noise_multiplier=sigma, max_grad_norm=1.0, batch_size=64, epochs=epochs, delta=1e-5, accountant="rdp"
    )
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    for _ in range(epochs * math.ceil(count / 64)):
        accountant.step(noise_multiplier=sigma, sample_rate=1 / math.ceil(count / 64))
    assert spent_epsilon(recipe, count) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


@pytest.mark.parametrize("sigma", [0.7, 2.0, 40.0])
def test_epsilon_of_full_batches_by_rdp_is_the_best_bound_of_the_gaussian_mechanism(sigma: float) -> None:
    epochs, delta = 12, 1e-6
    recipe = Recipe(
        noise_multiplier=sigma, max_grad_norm=1.0, batch_size=100, epochs=epochs, delta=delta, accountant="rdp"
    )
    order = np.concatenate([np.linspace(1.01, 60, 20_000), np.linspace(60, 1000, 20_000)])
    conversion = np.log1p(-1 / order) - (np.log(delta) + np.log(order)) / (order - 1)
    wanted = float(np.min(epochs * order / (2 * sigma**2) + conversion))
    assert spent_epsilon(recipe, 80) == pytest.approx(wanted, rel=0.01)


@cache
def densities(sigma: float, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what one step may show, and its density without and with the point."""
    shown = np.linspace(-40 * sigma, 40 * sigma + 1, 200_001)
    without, moved = (
        np.exp(-(((shown - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)) for mean in (0, 1)
    )
    return shown, without, (1 - rate) * without + rate * moved


def hockey_stick(epsilon: float, sigma: float, rate: float, removing: bool) -> float:
    """Return δ at ``epsilon`` of one step, by integration over what it shows."""
    shown, without, with_it = densities(sigma, rate)
    one, other = (with_it, without) if removing else (without, with_it)
    return float(np.trapezoid(np.maximum(one - np.exp(epsilon) * other, 0), shown))


@pytest.mark.parametrize(
    ("sigma", "steps", "delta"),
    thinned(
        (
            (sigma, steps, delta)
            for delta in (1e-4, 1e-6)
            for sigma, steps in ((0.7, 1), (1.0, 1), (5.0, 1), (5.0, 80), (40.0, 12))
        ),
        [(0.7, 1, 1e-6), (5.0, 1, 1e-4), (5.0, 80, 1e-6), (40.0, 12, 1e-4)],
    ),
)
def test_epsilon_of_full_batches_is_that_of_the_analytic_gaussian_mechanism(
    sigma: float, steps: int, delta: float
) -> None:
    """Balle and Wang, arXiv 1805.06530, eq. 6: n steps at σ are one at σ/√n."""
    recipe = Recipe(noise_multiplier=sigma, max_grad_norm=1.0, batch_size=100, epochs=steps, delta=delta)
    one = sigma / math.sqrt(steps)

    def excess(epsilon: float) -> float:
        least = log_ndtr(-0.5 / one - epsilon * one)
        return float(ndtr(0.5 / one - epsilon * one) - np.exp(epsilon + least)) - delta

    exact = brentq(excess, 0, 200)
    found = spent(recipe, 80)
    assert found.accountant == "prv" and found.low is not None
    assert found.low <= exact <= found.epsilon <= 1.01 * exact


@pytest.mark.parametrize(("sigma", "batch"), thinned([(0.6, 10), (1.0, 10), (1.0, 50)], [(1.0, 10)]))
def test_epsilon_of_one_step_on_a_drawn_batch_is_what_integration_says(sigma: float, batch: int) -> None:
    """A step on a share of the points; the accountant counts steps of a whole epoch, so it is asked for one itself."""
    delta = 1e-5
    found = accounting.by_prv((sigma, batch / 100, 1), delta)
    removing, adding = (
        brentq(lambda epsilon, way=way: hockey_stick(epsilon, sigma, batch / 100, way) - delta, 0, 60)
        for way in (True, False)
    )
    assert adding <= removing
    assert found.accountant == "prv" and found.low is not None
    assert found.low <= removing <= found.epsilon <= 1.01 * removing


@pytest.mark.parametrize(
    ("batch", "sigma"),
    thinned(
        ((batch, sigma) for batch in (10, 50, 100) for sigma in (0.5, 1.0, 4.0, 30.0)),
        [(50, 1.0), (100, 4.0)],
    ),
)
def test_prv_is_tighter_than_rdp(batch: int, sigma: float) -> None:
    recipe = Recipe(noise_multiplier=sigma, max_grad_norm=1.0, batch_size=batch, epochs=10, delta=1e-5)
    tight, loose = spent(recipe, 100), spent(replace(recipe, accountant="rdp"), 100)
    assert (tight.accountant, loose.accountant, loose.low) == ("prv", "rdp", None)
    assert tight.low is not None and tight.low < tight.epsilon < 0.97 * loose.epsilon
    assert tight.epsilon - tight.low < 0.01 * loose.epsilon


def test_a_target_is_met_with_less_noise_by_prv() -> None:
    recipe = replace(PRIVATE, noise_multiplier=None, target_epsilon=8.0, batch_size=1000)
    assert noise_of(recipe, 1000) < 0.95 * noise_of(replace(recipe, accountant="rdp"), 1000)


def test_where_prv_would_leave_float64_rdp_stands_and_is_named() -> None:
    found = spent(replace(PRIVATE, noise_multiplier=0.05, epochs=30), 1000)
    assert found == spent(replace(PRIVATE, noise_multiplier=0.05, epochs=30, accountant="rdp"), 1000)
    assert found.accountant == "rdp" and math.isfinite(found.epsilon)


def test_an_accountant_is_read_by_private_training_alone() -> None:
    with pytest.raises(BadInput, match=r"recipe\.accountant is rdp, which only private training reads"):
        replace(PLAIN, accountant="rdp")
    with pytest.raises(BadInput, match=r"recipe\.accountant is 'pld'; allowed: prv, rdp"):
        replace(PRIVATE, accountant="pld")


def test_no_noise_is_no_privacy_and_no_training_spends_none() -> None:
    assert spent_epsilon(PLAIN, 100) == math.inf
    assert spent_epsilon(UNBOUNDED, 100) == math.inf
    assert spent_epsilon(replace(PRIVATE, epochs=0), 100) == 0.0
    assert spent_epsilon(replace(PRIVATE, noise_multiplier=None, target_epsilon=1.0, epochs=0), 100) == 0.0


def test_delta_is_a_tenth_of_one_point_unless_given() -> None:
    assert delta_of(PRIVATE, 500) == pytest.approx(1 / 5000)
    assert delta_of(replace(PRIVATE, delta=1e-5), 500) == 1e-5
    assert spent_epsilon(replace(PRIVATE, delta=1e-9), 500) > spent_epsilon(PRIVATE, 500)


@pytest.mark.parametrize(
    ("target", "count"),
    thinned([(0.5, 8), (0.5, 400), (3.0, 40), (200.0, 400)], [(0.5, 8)]),
)
def test_a_target_is_met_with_little_to_spare_whatever_the_size(target: float, count: int) -> None:
    recipe = replace(PRIVATE, noise_multiplier=None, target_epsilon=target)
    spent = spent_epsilon(recipe, count)
    assert 0.95 * target < spent <= target
    again = replace(PRIVATE, noise_multiplier=noise_of(recipe, count))
    assert spent_epsilon(again, count) == pytest.approx(spent)


def test_a_target_decides_the_noise_that_is_trained_with() -> None:
    private = replace(PRIVATE, batch_size=POINTS)  # whose divergences need no sums
    recipe = replace(private, noise_multiplier=None, target_epsilon=5.0, accountant="rdp")
    same = replace(private, noise_multiplier=noise_of(recipe, POINTS))
    by_target, by_noise = (fit(network(), points(), chosen, seed=0) for chosen in (recipe, same))
    assert torch.equal(weights(by_target), weights(by_noise))


def test_a_target_out_of_reach_is_refused() -> None:
    with pytest.raises(
        BadInput, match=r"target_epsilon is 0\.0001, which no noise reaches on 50 points with delta 1e-15"
    ):
        noise_of(replace(PRIVATE, batch_size=50, noise_multiplier=None, target_epsilon=1e-4, delta=1e-15), 50)


# What is refused


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("mlp", {"hidden": [4], "batch_norm": True}, "BatchNorm1d, which mixes the points .* batch_norm: false"),
        ("resnet18", {"width": 2}, r"BatchNorm2d.*model\.settings\.norm: group"),
        ("vgg16", {"width": 1}, r"BatchNorm2d.*model\.settings\.norm: group"),
        ("swin_t", {"width": 8}, "does not work with this model .*; use resnet18"),
    ],
)
def test_models_that_cannot_be_private_are_refused_with_a_remedy(
    name: str, settings: dict[str, object], says: str
) -> None:
    model = make_model(name, settings).build((3, 32, 32), CLASSES, 0)
    data = TensorSet(torch.zeros(4, 3, 32, 32), torch.arange(4) % CLASSES)
    for call in (
        lambda: check_private(model),
        lambda: check_private(model, "opacus"),
        lambda: fit(model, data, PRIVATE, seed=0),
        lambda: fit(model, data, OPACUS, seed=0),
    ):
        with pytest.raises(BadInput, match=says) as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "settings"),
    thinned([("vgg16", {"norm": "group"}), ("vgg16", {"norm": "none"}), ("cnn", {})], [("cnn", {})]),
)
def test_models_without_batch_norm_may_be_private(name: str, settings: dict[str, object]) -> None:
    width = {} if name == "cnn" else {"width": 1}
    model = make_model(name, {**width, **settings}).build((1, 32, 32), CLASSES, 0)
    data = TensorSet(torch.rand(4, 1, 32, 32, generator=torch.Generator().manual_seed(0)), torch.arange(4) % CLASSES)
    check_private(model)
    assert spent_epsilon(PRIVATE, len(data)) > 0
    fit(model, data, PRIVATE, seed=0)


@as_one(
    "change, says",
    [
        ({"max_grad_norm": None}, "not recipe.max_grad_norm"),
        ({"max_grad_norm": 0.0}, "recipe.max_grad_norm is 0.0"),
        ({"noise_multiplier": -1.0}, "recipe.noise_multiplier is -1.0"),
        ({"noise_multiplier": math.inf}, "recipe.noise_multiplier is inf"),
        ({"target_epsilon": 1.0}, "are both given"),
        ({"noise_multiplier": None, "target_epsilon": 0.0}, "recipe.target_epsilon is 0.0"),
        ({"delta": 1.0}, "recipe.delta is 1.0"),
        ({"clip_norm": 1.0}, "recipe.clip_norm is 1.0"),
        ({"dtype": "bfloat16"}, "float32 only"),
        ({"noise_multiplier": None}, "which only private training reads"),
        ({"noise_multiplier": None, "max_grad_norm": None, "delta": 1e-5}, "recipe.delta is 1e-05, which only private"),
    ],
)
def test_settings_that_cannot_be_private_or_would_silently_not_be_are_refused(
    change: dict[str, object], says: str
) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        replace(PRIVATE, **change)
    assert "\n" not in str(caught.value)


def test_a_plan_may_ask_for_privacy() -> None:
    plan = load_plan(None, ["recipe.noise_multiplier=1", "recipe.max_grad_norm=0.5"])
    assert plan.recipe.private
    assert plan_from(plan.resolved()) == plan
    with pytest.raises(BadInput, match=r"recipe\.max_grad_norm"):
        load_plan(None, ["recipe.target_epsilon=3"])
