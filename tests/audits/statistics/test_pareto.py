"""Pareto fronts beside the definition in two loops, and how sure they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.errors import BadInput
from audits.statistics.pareto import front_shares, on_front

FEW = st.integers(0, 4).map(float)  # so that ties are common


def slow_front(points):
    def beats(a, b):
        return a[0] <= b[0] and a[1] >= b[1] and a != b

    return [not any(beats(rival, own) for rival in points) for own in points]


@settings(max_examples=40)
@given(st.lists(st.tuples(FEW, FEW), min_size=1, max_size=8))
def test_on_the_front_is_who_is_beaten_by_nobody(points):
    risk, worth = np.array(points).T
    assert on_front(risk, worth).tolist() == slow_front(points)


def test_risks_below_the_floor_are_no_better_than_it():
    risk, worth = np.array([0.45, 0.49, 0.60]), np.array([0.70, 0.75, 0.80])
    assert on_front(risk, worth).tolist() == [True, True, True]
    assert on_front(risk, worth, floor=0.5).tolist() == [False, True, True]


def test_shares_are_those_of_fronts_of_resampled_targets():
    rng = np.random.default_rng(0)
    risk, worth = 0.6 + 0.05 * rng.normal(size=(3, 4)), 0.8 + 0.02 * rng.normal(size=(3, 4))
    picks = np.stack(np.meshgrid(*[range(3)] * 3), axis=-1).reshape(-1, 3)  # all 27 samples of three targets
    slow = np.mean([slow_front(list(zip(risk[own].mean(0), worth[own].mean(0), strict=True))) for own in picks], axis=0)
    assert front_shares(risk, worth, draws=20000, seed=1) == pytest.approx(slow, abs=0.015)
    assert len(set(slow)) == 4


def test_what_settings_have_in_common_at_a_target_says_nothing_against_a_front():
    """Targets differ by far more than settings do; drawn apart, each setting would be on the front now and then."""
    common = np.random.default_rng(0).normal(size=(8, 1))
    risk, worth = common + np.array([0.0, 0.1]), common + np.array([0.1, 0.0])
    assert front_shares(risk, worth, draws=500, seed=0).tolist() == [1.0, 0.0]
    with pytest.raises(BadInput, match="two targets"):
        front_shares(risk[:1], worth[:1], draws=10, seed=0)
