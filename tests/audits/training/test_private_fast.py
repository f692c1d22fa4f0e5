"""The fast engine of DP-SGD is the slow one: a naive loop over points, and Opacus, on every kind of layer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.training.engines import fast as private_fast
from audits.training.engines.base import Noise
from audits.training.engines.fast import FastEngine, bounded_sums
from audits.training.fit import fit
from audits.training.private import check_private
from audits.training.recipe import Recipe
from audits.training.transfer import freeze
from tests.cases.families import thinned
from tests.cases.layer_models import FromTheMean

POINTS, CLASSES = 11, 3
FAST = Recipe(
    optimizer="sgd", learning_rate=0.1, epochs=3, batch_size=4, weight_decay=0.01, momentum=0.9,
    noise_multiplier=0.0, max_grad_norm=0.5,
)  # fmt: skip
SHIFTS = torch.Generator()


class Twice(nn.Module):
    """One layer called twice, one tied weight, one weight without a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6, bias=False), nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.scale = nn.Parameter(torch.ones(6))
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.shared(torch.tanh(self.shared(x))))
        return self.head(torch.tanh(self.second(torch.tanh(self.first(hidden))) * self.scale))


class Words(nn.Module):
    """Tokens as floats, an embedding with or without padding, a sequence, LayerNorm."""

    def __init__(self, padding: int | None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 8, padding_idx=padding)
        self.norm, self.inner, self.head = nn.LayerNorm(8), nn.Linear(8, 7), nn.Linear(7, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.inner(self.norm(self.embedding(x.long())))).mean(1))


class Images(nn.Module):
    """Convolutions with stride, groups and dilation, many positions and few; GroupNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 6, 3, padding=1), nn.GroupNorm(2, 6)
        self.second = nn.Conv2d(6, 12, 3, stride=2, groups=2)
        self.third = nn.Conv2d(12, 20, 2, dilation=2, bias=False)
        self.head = nn.Linear(20, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.second(torch.tanh(self.norm(self.first(x)))))
        return self.head(self.third(x).flatten(1))


def frozen(model: nn.Module) -> nn.Module:
    return freeze(model, 1)


def built(name: str) -> tuple[nn.Module, tuple[int, ...]]:
    torch.manual_seed(1)
    match name:
        case "mlp":
            return make_model("mlp", {"hidden": [9, 8]}).build((6,), CLASSES, 1), (6,)
        case "mlp frozen":
            return frozen(make_model("mlp", {"hidden": [9, 8]}).build((6,), CLASSES, 1)), (6,)
        case "cnn":
            return make_model("cnn", {"channels": [3, 4], "hidden": 9}).build((1, 8, 8), CLASSES, 1), (1, 8, 8)
        case "cnn frozen":
            return frozen(make_model("cnn", {"channels": [3, 4], "hidden": 9}).build((1, 8, 8), CLASSES, 1)), (1, 8, 8)
        case "resnet18":
            return make_model("resnet18", {"width": 2, "norm": "group"}).build((1, 16, 16), CLASSES, 1), (1, 16, 16)
        case "images":
            return Images(), (1, 8, 8)
        case "words":
            return Words(None), (5,)
        case "padded words":
            return Words(0), (5,)
        case _:
            return Twice(), (6,)


KNOWN_TO_OPACUS = ("mlp", "mlp frozen", "cnn", "cnn frozen", "resnet18", "images", "words")
MODELS = (*KNOWN_TO_OPACUS, "padded words", "twice")
"""Opacus gives padding a gradient, which autograd does not, and does not know weights outside of layers."""


def points(name: str, shape: tuple[int, ...], count: int = POINTS, dtype: torch.dtype = torch.float32) -> TensorSet:
    generator = torch.Generator().manual_seed(5)
    if "words" in name:
        x = torch.randint(0, 40, (count, *shape), generator=generator).to(dtype)
    else:
        x = torch.randn(count, *shape, generator=generator, dtype=torch.float64).to(dtype)
    return TensorSet(x, torch.randint(CLASSES, (count,), generator=generator))


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([value.detach().double().flatten() for value in model.state_dict().values()])


def noise(sigma: float = 0.0, bound: float = 0.5, expected: float = 4.0, seed: int = 0) -> Noise:
    return Noise(sigma, bound, expected, torch.Generator().manual_seed(seed))


# The computation


def slow_bounded_sums(model: nn.Module, data: TensorSet, bound: float, smoothing: float) -> dict[str, torch.Tensor]:
    """Return the sum of bounded gradients by plain autograd, one point at a time."""
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    total = {name: torch.zeros_like(parameter) for name, parameter in named.items()}
    for row in range(len(data)):
        loss = F.cross_entropy(model(data.x[row : row + 1]), data.y[row : row + 1], label_smoothing=smoothing)
        found = torch.autograd.grad(loss, list(named.values()))
        norm = math.sqrt(sum(float(part.square().sum()) for part in found))
        for name, part in zip(named, found, strict=True):
            total[name] += min(1.0, bound / norm) * part
    return total


@pytest.mark.parametrize(
    ("name", "bound"),
    thinned(
        ((name, bound) for name in MODELS for bound in (0.3, 1e9)),
        [*((name, 0.3) for name in MODELS if name != "resnet18"), ("mlp", 1e9)],
    ),
)
def test_bounded_gradients_are_those_of_a_loop_over_points(name: str, bound: float) -> None:
    model, shape = built(name)
    model = model.double()
    data = points(name, shape, dtype=torch.float64)
    wanted = slow_bounded_sums(model, data, bound, 0.1)
    engine = FastEngine(model, data, replace(FAST, label_smoothing=0.1), noise())
    found = bounded_sums(engine.survey, engine.pieces, data.x, data.y, bound)
    assert found.keys() == wanted.keys()
    for parameter, value in wanted.items():
        assert torch.allclose(found[parameter].reshape(value.shape), value, rtol=0, atol=1e-10), parameter
    if name in ("images", "words"):
        ghosts = {piece.parameter for piece in engine.pieces if piece.ghost}
        assert ghosts and ghosts != {piece.parameter for piece in engine.pieces}


def test_only_what_no_rule_covers_is_read_through_the_whole_model() -> None:
    for name in set(MODELS) - {"resnet18"}:
        model, shape = built(name)
        engine = FastEngine(model, points(name, shape), FAST, noise())
        assert set(engine.survey.whole) == ({"scale", "first.weight", "second.bias"} if name == "twice" else set())


def test_layers_that_are_dead_or_start_at_zero_are_read_by_their_rules() -> None:
    for value in (0.0, -1.0):
        model, shape = built("cnn")
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(value)
        engine = FastEngine(model, points("cnn", shape), FAST, noise())
        assert engine.survey.whole == ()
        assert torch.equal(weights(engine.survey.model), weights(model))


CHANGES: list[tuple[float, dict[str, object]]] = [
    (0.0, {}),
    (0.8, {"optimizer": "adamw", "schedule": "cosine", "label_smoothing": 0.1}),
]


@pytest.mark.parametrize(
    ("name", "sigma", "change"),
    thinned(
        ((name, *change) for name in KNOWN_TO_OPACUS for change in CHANGES),
        [(name, *CHANGES[place % 2]) for place, name in enumerate(KNOWN_TO_OPACUS) if name != "resnet18"],
    ),
)
def test_training_is_that_of_opacus(name: str, sigma: float, change: dict[str, object]) -> None:
    recipe = replace(FAST, noise_multiplier=sigma, learning_rate=0.01, **change)
    found = []
    for engine in ("fast", "opacus"):
        model, shape = built(name)
        data = points(name, shape, dtype=torch.float64)
        found.append(weights(fit(model.double(), data, replace(recipe, private_engine=engine), seed=3)))
    assert float((found[0] - found[1]).abs().max()) < 1e-6
    assert float((found[0] - weights(built(name)[0])).abs().max()) > 1e-4


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_one_step_in_float32_is_that_of_opacus(name: str) -> None:
    found = []
    for engine in ("fast", "opacus"):
        model, shape = built(name)
        recipe = replace(FAST, epochs=1, batch_size=POINTS, private_engine=engine)
        found.append(weights(fit(model, points(name, shape), recipe, seed=3)))
    assert float((found[0] - found[1]).abs().max()) < 1e-6


def test_dropout_is_the_same_in_norms_and_sums_and_in_opacus() -> None:
    found = []
    for engine in ("fast", "opacus"):
        model = make_model("mlp", {"hidden": [30], "dropout": 0.5}).build((6,), CLASSES, 1).double()
        data = points("mlp", (6,), dtype=torch.float64)
        found.append(weights(fit(model, data, replace(FAST, private_engine=engine), seed=3)))
    assert float((found[0] - found[1]).abs().max()) < 1e-6


@pytest.mark.parametrize("name", ["cnn", "words"])
def test_a_batch_may_be_summed_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, shape = built(name)
    data, rows = points(name, shape, dtype=torch.float64), torch.arange(POINTS)
    moved = []
    for most in (256, 3):
        monkeypatch.setattr(private_fast, "MOST_POINTS", most)
        engine = FastEngine(model.double(), data, FAST, noise())
        assert engine.at_once == most
        loss = engine.step(rows, SHIFTS)
        assert loss == pytest.approx(float(F.cross_entropy(model(data.x), data.y, reduction="sum").detach()))
        moved.append(torch.cat([value.flatten() for value in engine.weights().values()]))
    assert torch.allclose(*moved, rtol=0, atol=1e-12)


def test_frozen_layers_stay_and_get_no_noise() -> None:
    model, shape = built("mlp frozen")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    flags = [parameter.requires_grad for parameter in model.parameters()]
    fit(model, points("mlp", shape), replace(FAST, noise_multiplier=1.0), seed=0)
    kept = {name for name, value in model.state_dict().items() if torch.equal(value, before[name])}
    assert kept == {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert 0 < len(kept) < len(before)
    assert flags == [parameter.requires_grad for parameter in model.parameters()]


# The noise


def test_the_noise_of_a_step_has_the_stated_variance_in_every_parameter() -> None:
    model = make_model("cnn", {"channels": [40], "hidden": 200}).build((1, 8, 8), CLASSES, 1)
    data = points("cnn", (1, 8, 8))
    recipe = replace(FAST, learning_rate=1.0, momentum=0.0, weight_decay=0.0)
    for rows in (torch.arange(5), torch.empty(0, dtype=torch.int64)):
        quiet, loud = (FastEngine(model, data, recipe, noise(sigma, 0.5, 8.0, seed=3)) for sigma in (0.0, 1.5))
        losses = [engine.step(rows, SHIFTS) for engine in (quiet, loud)]
        assert losses[0] == losses[1] and (losses[0] > 0) == (len(rows) > 0)
        drawn = {name: (loud.weights()[name] - value).flatten() for name, value in quiet.weights().items()}
        stated = 1.5 * 0.5 / 8
        for name, values in drawn.items():
            if values.numel() > 1000:
                assert abs(float(values.std()) / stated - 1) < 4 / math.sqrt(2 * values.numel()), name
        every = torch.cat(list(drawn.values())).double().numpy()
        assert abs(every.mean()) < 4 * stated / math.sqrt(len(every))
        assert abs(every.std() / stated - 1) < 0.01
        assert abs(np.mean(np.abs(every) < stated) - 0.6827) < 0.01


def test_equal_seeds_give_equal_models_and_other_seeds_others() -> None:
    found = []
    for state, seed in ((1, 7), (2, 7), (1, 8)):
        model, shape = built("cnn")
        torch.manual_seed(state)
        before = torch.get_rng_state()
        found.append(weights(fit(model, points("cnn", shape), replace(FAST, noise_multiplier=0.7), seed=seed)))
        assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


# What is refused, and what is not


def test_a_set_of_one_point_and_empty_draws_train() -> None:
    model, shape = built("mlp")
    fit(model, points("mlp", shape, count=1), replace(FAST, noise_multiplier=0.7, batch_size=1), seed=0)
    fit(model, points("mlp", shape, count=3), replace(FAST, noise_multiplier=0.7, batch_size=1, epochs=9), seed=0)


def test_attention_is_read_through_the_whole_model_unless_it_drops_at_random() -> None:
    still, random = (
        make_model("swin_t", {"width": 4, "depths": [1, 1, 1, 1], "stochastic_depth": rate}).build((3, 32, 32), 2, 0)
        for rate in (0.0, 0.2)
    )
    check_private(still)
    with pytest.raises(BadInput, match=r"drops at random.*; use resnet18 .*private_engine: opacus"):
        check_private(random)


class Sampled(nn.Module):
    """A weight without a layer in a model that draws at random by a function."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.ones(6)), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.dropout(x * self.scale, 0.5, self.training))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (FromTheMean(), "answers a point differently beside another"),
        (nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, CLASSES)), "BatchNorm1d, which mixes"),
        (Sampled(), r"scale cannot be read .*private_engine: opacus"),
    ],
)
def test_models_whose_points_have_no_gradient_of_their_own_are_refused(model: nn.Module, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        fit(model, points("mlp", (6,)), FAST, seed=0)
    assert "\n" not in str(caught.value)


def test_the_engine_is_a_word_of_private_recipes_only() -> None:
    with pytest.raises(BadInput, match=r"private_engine is 'slow'; allowed: fast, opacus"):
        replace(FAST, private_engine="slow")
    with pytest.raises(BadInput, match=r"private_engine is opacus, which only private"):
        Recipe(private_engine="opacus")
