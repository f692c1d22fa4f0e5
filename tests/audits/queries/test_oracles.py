"""Oracles count every query, refuse what is over budget before it is asked, and leak nothing but their answers."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from audits.errors import BadInput
from audits.models import make_model
from audits.queries.oracles import Counter, LabelOracle, PosteriorOracle, label_oracle, logit_oracle, posterior_oracle
from tests.cases.families import as_one

SHAPE, CLASSES = (2, 3), 4


def model() -> nn.Module:
    return make_model("mlp", {"hidden": [5]}).build(SHAPE, CLASSES, 0).eval()


def inputs(count: int, queries: int) -> torch.Tensor:
    return torch.randn(count, queries, *SHAPE, generator=torch.Generator().manual_seed(0))


def ids(*points: int) -> np.ndarray:
    return np.array(points, dtype=np.int64)


class Spy:
    """An answerer that remembers how many inputs it was given."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, points: torch.Tensor) -> torch.Tensor:
        self.asked += len(points)
        return torch.zeros(len(points), dtype=torch.int64)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), st.integers(1, 5))))
def test_a_counter_adds_up_the_queries_of_each_point(calls: list[tuple[list[int], int]]) -> None:
    counter, wanted = Counter(), dict.fromkeys(range(6), 0)
    for points, queries in calls:
        counter.count(ids(*points), queries)
        for point in points:
            wanted[point] += queries
    assert counter.queries_spent(np.arange(6)).tolist() == list(wanted.values())
    assert counter.queries_spent(np.arange(6)).dtype == np.int32


def test_a_point_named_twice_in_one_call_is_counted_twice() -> None:
    counter = Counter(budget=3)
    counter.count(ids(1, 1), 1)
    assert counter.queries_spent(ids(1)).tolist() == [2]
    with pytest.raises(BadInput):
        counter.count(ids(1, 1), 1)


def test_a_label_oracle_counts_each_query_of_each_point() -> None:
    oracle = label_oracle(model())
    oracle.ask(inputs(3, 5), ids(7, 8, 9))
    oracle.ask(inputs(1, 2), ids(8))
    assert oracle.counter.queries_spent(ids(7, 8, 9, 10)).tolist() == [5, 7, 5, 0]


@pytest.mark.parametrize("open_oracle", [posterior_oracle, logit_oracle])
def test_an_oracle_of_outputs_counts_one_query_a_point(open_oracle: Callable[[nn.Module], PosteriorOracle]) -> None:
    oracle = open_oracle(model())
    oracle.ask(inputs(3, 1)[:, 0], ids(7, 8, 9))
    assert oracle.counter.queries_spent(ids(7, 8, 9)).tolist() == [1, 1, 1]


def test_a_budget_is_refused_before_anything_is_asked_and_nothing_is_counted() -> None:
    spy = Spy()
    oracle = LabelOracle(spy, budget=4)
    oracle.ask(inputs(2, 3), ids(1, 2))
    with pytest.raises(BadInput, match="budget of 4") as caught:
        oracle.ask(inputs(2, 2), ids(2, 3))
    assert "\n" not in str(caught.value)
    assert spy.asked == 6
    assert oracle.counter.queries_spent(ids(1, 2, 3)).tolist() == [3, 3, 0]
    oracle.ask(inputs(2, 1), ids(1, 2))  # what is left may still be asked
    assert oracle.counter.queries_spent(ids(1, 2)).tolist() == [4, 4]


def test_a_posterior_budget_is_refused_before_anything_is_asked() -> None:
    asked: list[int] = []

    def answer(points: torch.Tensor) -> torch.Tensor:
        asked.append(len(points))
        return torch.zeros(len(points), CLASSES)

    oracle = PosteriorOracle(answer, budget=1)
    oracle.ask(inputs(1, 1)[:, 0], ids(1))
    with pytest.raises(BadInput, match="budget"):
        oracle.ask(inputs(1, 1)[:, 0], ids(1))
    assert asked == [1]


@pytest.mark.parametrize("chunk", [1, 4, 1024])
def test_labels_are_those_of_the_model_in_the_order_asked(chunk: int) -> None:
    net, x = model(), inputs(3, 4)
    found = label_oracle(net, chunk=chunk).ask(x, ids(1, 2, 3))
    assert found.dtype == torch.int64 and found.shape == (3, 4) and not found.requires_grad
    for k in range(3):
        for q in range(4):
            assert found[k, q] == net(x[k, q][None]).argmax()


def test_posteriors_are_log_probabilities_in_float64() -> None:
    net, x = model(), inputs(3, 1)[:, 0]
    found = posterior_oracle(net, chunk=2).ask(x, ids(1, 2, 3))
    assert found.dtype == torch.float64 and not found.requires_grad
    assert torch.allclose(found, net(x).double().softmax(1).log(), rtol=0, atol=1e-12)


def test_logits_are_the_outputs_of_the_model_in_float64() -> None:
    net, x = model(), inputs(3, 1)[:, 0]
    found = logit_oracle(net, chunk=2).ask(x, ids(1, 2, 3))
    assert found.dtype == torch.float64 and not found.requires_grad
    assert torch.allclose(found, net(x).double(), rtol=0, atol=1e-6)
    assert torch.allclose(found.softmax(1), posterior_oracle(net).ask(x, ids(1, 2, 3)).exp(), rtol=0, atol=1e-6)


def test_a_budget_of_logits_is_refused_before_they_are_asked() -> None:
    oracle = logit_oracle(model(), budget=1)
    oracle.ask(inputs(1, 1)[:, 0], ids(1))
    with pytest.raises(BadInput, match="budget of 1"):
        oracle.ask(inputs(1, 1)[:, 0], ids(1))


@as_one(
    "answer",
    [
        lambda points: torch.zeros(len(points), CLASSES),
        lambda points: torch.zeros(len(points)),
        lambda points: torch.zeros(len(points), CLASSES, dtype=torch.int64),
        lambda points: torch.zeros(len(points) + 1, dtype=torch.int64),
        lambda points: torch.zeros(len(points), dtype=torch.int32),
        lambda points: torch.zeros(len(points), dtype=torch.bool),
    ],
)
def test_an_answerer_that_gives_anything_but_labels_is_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match="int64"):
        LabelOracle(answer).ask(inputs(2, 3), ids(1, 2))


def reachable(thing: Any, seen: dict[int, Any]) -> dict[int, Any]:
    """Return everything that attributes, slots and containers lead to from ``thing``; functions are not opened."""
    if id(thing) in seen or isinstance(thing, (types.FunctionType, types.MethodType, type, str, int)):
        return seen
    seen[id(thing)] = thing
    inner = list(getattr(thing, "__dict__", {}).values())
    for cls in type(thing).__mro__:
        slots = getattr(cls, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name):
                inner.append(getattr(thing, name))
    if isinstance(thing, dict):
        inner += [*thing.keys(), *thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        inner += list(thing)
    for part in inner:
        reachable(part, seen)
    return seen


def test_nothing_of_the_model_is_an_attribute_of_a_label_oracle() -> None:
    oracle = label_oracle(model(), budget=100)
    oracle.ask(inputs(2, 3), ids(1, 2))
    found = reachable(oracle, {}).values()
    assert any(isinstance(thing, Counter) for thing in found)  # the walk does open what it meets
    assert not [thing for thing in found if isinstance(thing, (nn.Module, np.ndarray))]
    assert not [thing for thing in found if isinstance(thing, torch.Tensor) and thing.is_floating_point()]
    assert {name for name in dir(oracle) if not name.startswith("__")} == {"ask", "counter"}


def test_the_walk_that_finds_no_model_would_find_one() -> None:
    class Leaky:
        __slots__ = ("_inner",)

        def __init__(self) -> None:
            self._inner = [{"model": model()}]

    assert any(isinstance(thing, nn.Module) for thing in reachable(Leaky(), {}).values())


def test_nothing_can_be_hung_on_an_oracle() -> None:
    for oracle in (label_oracle(model()), posterior_oracle(model()), logit_oracle(model())):
        with pytest.raises(AttributeError):
            oracle.model = model()
