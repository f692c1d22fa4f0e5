"""Layers are not read by what they see where that is not all, or not of the point that it is taken for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gradients.attribution import misread, uses_of
from audits.gradients.engine import passed, pieces
from audits.gradients.gram import gradients, gram, gram_rows, squared_norms
from audits.gradients.survey import surveyed
from audits.training.engines.base import Noise
from audits.training.engines.fast import FastEngine, bounded_sums, with_layers
from audits.training.recipe import Recipe
from audits.uniqueness.diagonal import diagonal_uniqueness
from tests.cases.families import thinned
from tests.cases.layer_models import CLASSES, FromTheMean, case, drawn, labels, slow_gradients

POINTS = 40


class Twice(nn.Module):
    """Uses a weight a second time, by a function, behind a ReLU that lets one point in ten through."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 6), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.body(x)
        again = F.linear(found.tanh(), self.body.weight) * (x[:, :1] > 1).to(x.dtype)
        return self.head(found + again)


class TwoLayers(Twice):
    """The same, but the second use is another layer's."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(6, 6, bias=False)
        self.other.weight = self.body.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.body(x)
        return self.head(found + self.other(found.tanh()) * (x[:, :1] > 1).to(x.dtype))


class ByLength(nn.Module):
    """Sorts texts by length before its body and puts the answers back."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 6, padding_idx=0)
        self.body, self.head = nn.Linear(6, 6), nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        order = (x > 0).sum(1).argsort(descending=True, stable=True)
        return self.head(self.body(self.words(x[order])).tanh().mean(1)[order.argsort()])


class Rarely(nn.Module):
    """Uses the weight of its head a second time, but only for a point whose first number is above two."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 6), head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.head(self.body(x).tanh())
        rare = (x[:, :1] > 2).to(x.dtype)
        return found + rare * F.linear(x.square(), self.head.weight) if rare.any() else found


class OwnLinear(nn.Linear):
    """A linear layer without a rule."""


RECIPE = Recipe(
    epochs=1, batch_size=POINTS, optimizer="sgd", learning_rate=0.1, noise_multiplier=1.0, max_grad_norm=0.1, delta=1e-4
)


def numbers() -> torch.Tensor:
    """Return points of which the first two, and the last, do not reach the second use."""
    x = drawn(POINTS, 6)
    x[:, 0] = torch.arange(POINTS) % 10 / 8
    x[-1, 0] = 0.0
    return x


def texts() -> torch.Tensor:
    """Return texts of which the first two, and the last, are equally long."""
    x = torch.randint(1, 20, (POINTS, 8), generator=torch.Generator().manual_seed(0))
    length = torch.randint(2, 8, (POINTS,), generator=torch.Generator().manual_seed(1))
    length[[0, 1, -1]] = 8
    return x * (torch.arange(8) < length[:, None])


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor], set[str]]] = {
    "used twice": (Twice, numbers, {"body"}),
    "in two layers": (TwoLayers, numbers, {"body", "other"}),
    "sorted": (ByLength, texts, {"words", "body"}),
}


def made(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = MODELS[name][0]()
    return model.eval(), MODELS[name][1](), labels(POINTS)


@pytest.mark.parametrize(
    ("name", "dtype"),
    thinned(
        ((name, dtype) for name in MODELS for dtype in (torch.float64, torch.float32)),
        [*((name, torch.float64) for name in MODELS), ("used twice", torch.float32)],
    ),
)
def test_what_the_first_points_do_not_show_is_seen_all_the_same(name: str, dtype: torch.dtype) -> None:
    model, x, y = made(name)
    truth = slow_gradients(model, x, y)
    scale = float((truth @ truth.T).abs().max())
    error = 1e-10 if dtype == torch.float64 else 1e-5
    with surveyed(model, x, y, dtype=dtype) as found:
        assert {layer.module for layer in found.tapped} == {"head"} and found.refuted == MODELS[name][2]
    assert float((gram(model, x, y, dtype=dtype) - truth @ truth.T).abs().max()) < error * scale
    assert float((squared_norms(model, x, y, dtype=dtype) - truth.square().sum(1)).abs().max()) < error * scale


def rare_points() -> torch.Tensor:
    """Return points of which only number 4 is one that no look at sixteen of them shows."""
    x = drawn(POINTS, 6).clamp(max=1.5)
    x[4, 0] = 3.0
    return x


ASK: dict[str, Callable[..., torch.Tensor]] = {
    "gram": gram,
    "norms": squared_norms,
    "gradients": gradients,
    "diagonal": diagonal_uniqueness,
    "rows": lambda *given, **settings: gram_rows(*given, 2, 9, **settings),
}


@pytest.mark.parametrize(
    ("ask", "chunk", "dtype"),
    thinned(
        itertools.product(ASK, (1, 3, 32), (torch.float64, torch.float32)),
        [*((ask, 3, torch.float64) for ask in ASK), ("gram", 1, torch.float32), ("norms", 32, torch.float32)],
    ),
)
def test_a_weight_that_a_rare_input_uses_elsewhere_is_refused(ask: str, chunk: int, dtype: torch.dtype) -> None:
    x = rare_points()
    with pytest.raises(BadInput, match=r"head.weight .*some inputs use it elsewhere.*subclass") as caught:
        ASK[ask](Rarely(nn.Linear(6, CLASSES)), x, labels(POINTS), chunk=chunk, dtype=dtype)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("memory", thinned([3000, 2**20], [3000]))
def test_every_point_is_looked_at_however_small_the_memory_is(memory: int) -> None:
    x = rare_points()
    for rare in (4, POINTS - 2):
        order = torch.arange(POINTS)
        order[4], order[rare] = rare, 4
        with pytest.raises(BadInput, match="some inputs use it elsewhere"):
            gram(Rarely(nn.Linear(6, CLASSES)), x[order], labels(POINTS), chunk=2, memory=memory)


def test_what_the_message_says_helps() -> None:
    model, x, y = Rarely(OwnLinear(6, CLASSES)), rare_points(), labels(POINTS)
    truth = slow_gradients(model, x, y)
    torch.testing.assert_close(gram(model, x, y), truth @ truth.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", thinned((torch.float64, torch.float32), (torch.float64,)))
def test_gradients_that_vanish_but_for_rounding_are_not_taken_for_wrong_ones(dtype: torch.dtype) -> None:
    """A constant before a norm, in every channel, changes nothing: the bias of what is in front has no gradient."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        front = nn.Conv1d(2, 4, 3)
        model = nn.Sequential(front, nn.GroupNorm(4, 4, affine=False), nn.ReLU(), nn.Flatten(), nn.Linear(160, CLASSES))
    front.weight.requires_grad_(False)
    x, y = drawn(POINTS, 2, 42), labels(POINTS)
    for chunk in (1, 7, 32):
        K = gram(model, x, y, dtype=dtype, chunk=chunk)
    truth = slow_gradients(model, x, y)
    assert float((K - truth @ truth.T).abs().max()) < 1e-4 * float(K.max())


@pytest.mark.parametrize(
    ("name", "most"),
    thinned(
        [*((name, 0.0) for name in ("mlp", "cnn", "resnet18_group", "embedding", "bert")), ("shared", 1e-13)],
        [("cnn", 0.0), ("embedding", 0.0), ("shared", 1e-13)],
    ),
)
def test_the_check_changes_no_bit_of_what_is_read(name: str, most: float) -> None:
    """But where torch multiplies sequences in another form if their weight needs a gradient."""
    model, x, y = case(name)
    with surveyed(model, x, y) as found:
        layout = pieces(found, "pairs", 10**6)
        plain, checked = (passed(found, layout, x, y, checked=each) for each in (False, True))
    for one, other in zip(plain, checked, strict=True):
        assert all(float((a - b).abs().max()) <= most for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_private_training_bounds_what_a_point_adds(name: str) -> None:
    model, x, y = made(name)
    engine = FastEngine(model, TensorSet(x, y), RECIPE, Noise(0.0, 0.1, float(POINTS), torch.Generator()))
    engine.survey.model.eval()
    sums = bounded_sums(engine.survey, engine.pieces, x, y, 0.1)
    rows = slow_gradients(model, x, y)
    want = (rows * (0.1 / rows.norm(dim=1)).clamp(max=1)[:, None]).sum(0)
    torch.testing.assert_close(
        torch.cat([sums[name] for name in engine.survey.wanted]).double(), want, rtol=0, atol=1e-5
    )


def test_what_the_models_own_weights_refute_stays_refuted() -> None:
    """Positive weights and inputs, on which dead layers are looked at again, may hide what refuted a layer."""
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, CLASSES))
    with surveyed(model, drawn(POINTS, 6), labels(POINTS)) as second:
        assert not second.whole
    (last,) = (layer for layer in second.tapped if layer.module == "2")
    whole = tuple(name for name in second.wanted if not name.startswith("2."))
    first = replace(second, tapped=(last,), whole=whole, batched=True, refuted=frozenset({"0"}))
    found = with_layers(first, second)
    assert [layer.module for layer in found.tapped] == ["2", "1"]
    assert found.whole == ("0.weight", "0.bias") and found.batched


def test_points_in_other_company_than_the_first_two_are_looked_at() -> None:
    x = drawn(POINTS, 6)
    x[1] = x[-1] = x[0]  # their mean is each of them
    with pytest.raises(BadInput, match="differently beside another one"):
        gram(FromTheMean().eval(), x, labels(POINTS))


def test_uses_are_counted_where_they_stand_in_the_graph() -> None:
    weight, other = torch.ones(2, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    value = (F.linear(other, weight) * 0 + F.linear(torch.ones(2), weight) * (weight * weight)).sum()
    uses = uses_of(value, [weight, other])
    assert (uses[id(weight)], uses[id(other)]) == (4, 1)
    assert not uses_of(torch.ones(()), [weight])


def test_a_layer_that_is_not_called_is_refused() -> None:
    model = nn.ModuleDict({"used": nn.Linear(6, CLASSES), "not": nn.Linear(6, 3)}).requires_grad_(False)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner["used"](x)

    layers = {f"inner.{name}": {own: f"inner.{name}.{own}" for own in ("weight", "bias")} for name in ("used", "not")}
    assert misread(Outer(), layers, drawn(5, 6), torch.ones(CLASSES), 1e-4) == {"inner.not"}
