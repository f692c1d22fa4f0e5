"""Members told from non-members without a model: not by chance draws, and at once where they differ."""

from __future__ import annotations

import numpy as np
import pytest

from audits.errors import BadInput
from audits.statistics.roc import auc
from audits.targets.blind import CLASSIFIERS, Blind, blind_test, described, scored
from tests.cases.simulations import fewer, sizes

LINEAR = CLASSIFIERS["linear"]
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


def points(rng: np.random.Generator, shift: float = 0.0, count: int = 120) -> Drawn:
    member = rng.permutation(np.arange(count) < count // 2)
    labels = rng.integers(0, 3, count)
    pattern = np.where(np.arange(8) % 2, 1.0, -1.0)  # another source
    x = rng.normal(size=(count, 6, 8)) + labels[:, None, None] + shift * member[:, None, None] * pattern
    return x.astype(np.float32), labels, member


@sizes(0.1)
def test_members_by_chance_differ_as_rarely_as_promised(size: float) -> None:
    """At 2.5 %, whatever the classifiers and however many points: chance draws members in the test as well."""
    rng, runs = np.random.default_rng(0), fewer(100, size)
    found = [blind_test(*points(rng, count=60), seed=run) for run in range(runs)]
    assert sum(each.differ for each in found) <= (8 if size == 1 else 3)
    assert all(0 < each.p <= 1 for each in found)


def test_members_that_differ_by_inputs_or_by_labels_are_told() -> None:
    rng = np.random.default_rng(1)
    found = blind_test(*points(rng, 0.5))
    assert found.auc > 0.8 and found.low > 0.7 and found.differ and found.p == 1 / 40
    x, labels, member = points(rng)
    nothing = np.zeros_like(x)
    assert blind_test(nothing, np.where(member, labels, labels + 1), member).differ
    assert blind_test(nothing, np.where(member, 0, 1), member).auc == 1.0


def test_trees_see_what_a_linear_rule_does_not() -> None:
    """Members are brighter in one class and darker in the other: on average they are as bright as others."""
    rng = np.random.default_rng(2)
    x, labels, member = points(rng, count=400)
    brighter = np.select([labels == 1, labels == 0], [0.6, -0.6]) * np.where(member, 1, -1)
    x = (x + brighter[:, None, None]).astype(np.float32)
    found = blind_test(x, labels, member)
    assert found.by == "trees" and found.differ
    assert auc(scored(LINEAR, described(x, labels), member), member) < found.auc - 0.05


def test_labels_that_were_given_otherwise_show_in_what_models_say_that_saw_neither() -> None:
    rng = np.random.default_rng(3)
    x, labels, member = points(rng, count=300)
    wrong = ~member & (rng.random(300) < 0.4)
    unseen = np.column_stack([np.where(wrong, 0.1, 0.8) + rng.normal(0, 0.1, 300)])
    assert blind_test(x, labels, member, unseen=unseen).differ
    assert isinstance(blind_test(x, labels, member), Blind)


def test_no_point_is_scored_by_a_fit_that_has_seen_it() -> None:
    """The label of a point changes its own score only by what others are taught."""
    _, labels, member = points(np.random.default_rng(2))
    apart = described(np.eye(120, dtype=np.float32), labels)  # a number of its own for each point: learnt by heart
    for fit in CLASSIFIERS.values():
        assert abs(auc(scored(fit, apart, member), member) - 0.5) < 0.15
    assert scored(LINEAR, apart, member, seed=3).shape == (120,)
    with pytest.raises(BadInput, match="4 points of a side"):
        scored(LINEAR, apart, np.arange(120) < 4)
