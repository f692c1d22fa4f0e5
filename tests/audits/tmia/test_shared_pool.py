"""p-values for reference models that share a pool: the map, its level in the model it is derived from, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from audits.errors import BadInput
from audits.tmia.p_values import rank_p
from audits.tmia.shared_pool import (
    NO_CORRECTION,
    attained,
    check_corrected_level,
    corrected_p,
    pool_warning,
    raw_level,
    smallest,
    spread,
)
from tests.audits.tmia.made_up_answers import BETA, ruling, scene
from tests.cases.families import as_one, thinned
from tests.cases.simulations import fewer, sizes


@as_one("pool_sets", [0.5, 1, 3, 10, 15, 1000])
def test_the_map_stretches_normal_scores_and_is_undone_by_the_level(pool_sets: float) -> None:
    p = np.array([1e-4, 0.0099, 0.05, 0.5, 0.7, 1.0])
    found = corrected_p(p, pool_sets)
    np.testing.assert_allclose(found, stats.norm.cdf(stats.norm.ppf(p) / math.sqrt(1 + 1 / pool_sets)), rtol=1e-12)
    assert (found[:3] > p[:3]).all() and found[3] == 0.5 and found[4] < 0.7 and found[5] == 1.0
    assert (np.diff(found) > 0).all()
    for value, corrected in zip(p[:5], found[:5], strict=True):
        assert raw_level(float(corrected), pool_sets) == pytest.approx(value, rel=1e-7)


def test_without_correction_nothing_changes_and_gaps_stay_gaps() -> None:
    p = np.array([[0.05, np.nan], [1.0, 0.25]])
    np.testing.assert_array_equal(corrected_p(p, NO_CORRECTION), p)
    assert np.isnan(corrected_p(p, 3.0)).tolist() == [[False, True], [False, False]]
    assert raw_level(0.05, NO_CORRECTION) == 0.05 and spread(NO_CORRECTION) == 1.0


def null_and_reference(pool_sets: int, runs: int, n_ref: int, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Sums of influences of n points: of a null model each, and of reference models that draw from one pool a run."""
    rng = np.random.default_rng(pool_sets)
    null, reference = rng.normal(size=(runs, n)).sum(1), np.empty((n_ref, runs))
    for run in range(runs):
        pool = rng.normal(size=pool_sets * n)
        reference[:, run] = rng.choice(pool, (n_ref, n)).sum(1)
    return null, reference


@sizes(0.25)
@pytest.mark.parametrize(("pool_sets", "inflated"), thinned([(1, 0.122), (3, 0.077), (15, 0.056)], [(3, 0.077)]))
def test_corrected_p_values_keep_their_level_where_raw_ranks_do_not(
    pool_sets: int, inflated: float, size: float
) -> None:
    runs, n_ref = fewer(12_000, size), 399
    null, reference = null_and_reference(pool_sets, runs, n_ref)
    raw = rank_p(null, reference, larger_is_member=True)
    error = 3 * math.sqrt(0.05 * 0.95 / runs)
    assert np.mean(raw <= 0.05) == pytest.approx(inflated, abs=error * 1.5)
    for beta in (level for level in (0.01, 0.05, 0.2) if level >= smallest(n_ref, pool_sets)):
        kept = np.mean(corrected_p(raw, pool_sets) <= beta)
        assert kept == pytest.approx(attained(beta, n_ref, pool_sets), abs=4 * math.sqrt(beta * (1 - beta) / runs))


def test_attained_levels_are_those_of_the_ranks() -> None:
    assert attained(0.05, 100, NO_CORRECTION) == 5 / 101
    assert attained(0.05, 100, 15.0) == pytest.approx(stats.norm.cdf(stats.norm.ppf(4 / 101) / math.sqrt(16 / 15)))
    assert smallest(19, NO_CORRECTION) == 1 / 20
    assert smallest(19, 10.0) == pytest.approx(stats.norm.cdf(stats.norm.ppf(1 / 20) / math.sqrt(1.1)))


@as_one("pool_sets", [0.05, 1.0, 5.0, 15.0])
def test_a_level_copied_from_a_corrected_p_value_is_reached_by_it(pool_sets: float) -> None:
    for n_ref in (9, 20, 100, 200):
        for rank in range(1, min(12, n_ref)):
            p = rank / (n_ref + 1)
            beta = float(corrected_p(p, pool_sets))
            if beta >= 0.5:
                continue
            assert p <= raw_level(beta, pool_sets) < (rank + 1) / (n_ref + 1)
            assert attained(beta, n_ref, pool_sets) == pytest.approx(beta, rel=1e-9)
        check_corrected_level(smallest(n_ref, pool_sets), n_ref, pool_sets)


def test_levels_out_of_reach_are_refused_with_what_would_reach_them() -> None:
    with pytest.raises(BadInput) as refused:
        check_corrected_level(0.05, 19, 10.0)
    assert str(refused.value) == (
        "beta = 0.05 cannot be reached with n_ref = 19 and a pool of 10 training sets (the smallest p-value is "
        "0.0584); raise n_ref to 23 or more, or take a larger pool, or a beta of 0.0585 or more"
    )
    with pytest.raises(BadInput) as hopeless:
        check_corrected_level(0.05, 100, 0.05)
    assert "); take a larger pool, or a beta of 0.3" in str(hopeless.value)
    check_corrected_level(0.05, 23, 10.0)
    check_corrected_level(0.0585, 19, 10.0)
    with pytest.raises(BadInput, match="raise n_ref to 22 or more"):
        check_corrected_level(0.05, 21, 15.0)
    check_corrected_level(0.05, 22, 15.0)
    check_corrected_level(0.05, 19, NO_CORRECTION)
    with pytest.raises(BadInput, match=r"smallest p-value is 1/20"):
        check_corrected_level(0.01, 19, NO_CORRECTION)
    with pytest.raises(BadInput, match="pool_sets is 0; allowed: above 0"):
        spread(0)


@as_one("name", ["tmia_distance", "tmia_posterior", "pmia", "noise_votes"])
def test_attacks_decide_by_corrected_p_values(name: str) -> None:
    made = scene()
    raw, corrected = ruling(name, made.answers), ruling(name, made.answers, pool_sets=2.0)
    for group in ("target", "null"):
        np.testing.assert_array_equal(corrected.p[group], corrected_p(raw.p[group], 2.0))
        np.testing.assert_array_equal(corrected.decision[group], raw.p[group] <= raw_level(BETA, 2.0))
        assert not (corrected.decision[group] & ~raw.decision[group]).any()
    assert corrected.decision["target"].sum() < raw.decision["target"].sum()


def test_a_small_pool_is_warned_of_with_the_rate_of_raw_ranks() -> None:
    assert pool_warning(20_000, 2_000, 100) == ""
    text = pool_warning(6_000, 2_000, 100)
    assert "3 times" in text and "raise split.attacker_points to 20000 or more, or train on 600 or fewer" in text
    assert "come up in about 12.2% of non-members" in pool_warning(2_000, 2_000, 100)
    with pytest.raises(BadInput, match="1 or more each"):
        pool_warning(0, 2_000, 100)
