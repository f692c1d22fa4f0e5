"""Detectable effects against simulated audits: what is called detectable is found as often as promised."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

from audits.statistics.null import permutation_p
from audits.statistics.power import detectable_auc, detectable_shift
from audits.statistics.roc import auc
from tests.cases.families import thinned
from tests.cases.simulations import fewer, sizes

LEVEL = 0.95


@sizes(1 / 3)
@pytest.mark.parametrize(("units", "members"), thinned([(4, 30), (8, 15)], [(4, 30)]))
def test_an_auc_called_detectable_is_found_four_times_in_five(units: int, members: int, size: float) -> None:
    at = detectable_auc(members, members, units, error=0.0, level=LEVEL)
    shift = np.sqrt(2.0) * ndtri(at)  # of normal scores with this AUC
    rng = np.random.default_rng(5)
    member = np.tile(np.repeat([True, False], members), units)
    cluster = np.repeat(np.arange(units), 2 * members)
    found = [
        permutation_p(rng.normal(size=member.size) + shift * member, member, cluster, draws=200, seed=draw)[0]
        for draw in range(fewer(300, size))
    ]
    assert np.mean(np.array(found) <= 1.0 - LEVEL) == pytest.approx(
        0.8, abs=0.07 / np.sqrt(size)
    )  # three standard errors


def test_permutations_of_points_spread_the_mean_auc_as_the_formula_says() -> None:
    rng = np.random.default_rng(1)
    member = np.repeat([True, False], 20)
    drawn = [np.mean([auc(rng.normal(size=40), member) for _ in range(3)]) for _ in range(2000)]
    at = detectable_auc(20, 20, 3, error=0.0, level=LEVEL, power=0.5)
    assert (at - 0.5) / ndtri(0.975) == pytest.approx(np.std(drawn), rel=0.05)


def test_more_tests_and_more_noise_ask_for_more() -> None:
    one = detectable_auc(50, 50, 4, 0.02, LEVEL)
    assert one < detectable_auc(50, 50, 4, 0.02, LEVEL, tests=40)
    assert one < detectable_auc(50, 50, 4, 0.08, LEVEL) and one < detectable_auc(50, 50, 2, 0.02, LEVEL)


def test_a_shift_called_detectable_leaves_chance_out_of_its_interval_four_times_in_five() -> None:
    count, spread = 12, 1.0
    error = stdtrit(count - 1, 0.975) * spread / np.sqrt(count)
    at = detectable_shift(error, count - 1, LEVEL)
    drawn = np.random.default_rng(3).normal(at, spread, size=(4000, count))
    low = drawn.mean(1) - stdtrit(count - 1, 0.975) * drawn.std(1, ddof=1) / np.sqrt(count)
    assert np.mean(low > 0.0) == pytest.approx(0.8, abs=0.04)
