"""p-values of TMIA: the count behind them, invariance, validity, attainable levels, PMIA's smoothed form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator
from scipy.stats import binom

from audits.errors import BadInput
from audits.tmia import p_values
from audits.tmia.p_values import decider, rank_p, smoothed_p
from tests.cases.families import as_one, thinned

BETAS = (0.05, 0.1, 0.3)
MAPS = {
    "affine": lambda x: 2 * x + 1,
    "cubic": lambda x: x**3,
    "exponential": np.exp,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x / 4)),
}


def scene(seed, targets=5, n_ref=30, points=12, ties=False, gaps=0.0):
    rng = np.random.default_rng(seed)
    own, others = rng.normal(size=(targets, points)), rng.normal(size=(n_ref, points))
    if ties:
        own, others = np.round(own * 2), np.round(others * 2)
    own[rng.random(own.shape) < gaps] = np.nan
    others[rng.random(others.shape) < gaps] = np.nan
    return own, others


def slow_rank(own, others, larger_is_member):
    found = np.full(own.shape, np.nan)
    for target, point in np.ndindex(own.shape):
        left = [float(value) for value in others[:, point] if not np.isnan(value)]
        value = own[target, point]
        if not np.isnan(value):
            like = [other >= value if larger_is_member else other <= value for other in left]
            found[target, point] = (1 + sum(like)) / (len(left) + 1)
    return found


@as_one("larger_is_member", [False, True])
@as_one("ties, gaps", [(False, 0.0), (True, 0.0), (True, 0.2)])
def test_rank_p_counts_reference_models_at_least_as_member_like(larger_is_member, ties, gaps):
    own, others = scene(1, ties=ties, gaps=gaps)
    found = rank_p(own, others, larger_is_member)
    np.testing.assert_array_equal(found, slow_rank(own, others, larger_is_member))
    np.testing.assert_array_equal(rank_p(own[2], others, larger_is_member), found[2])
    np.testing.assert_array_equal(rank_p(-own, -others, not larger_is_member), found)
    assert np.isnan(found).any() == (gaps > 0)


def test_small_losses_and_large_distances_are_member_like():
    reference = np.array([[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(rank_p([[0.5], [1.0], [3.5]], reference, False), [[0.25], [0.5], [1.0]])
    np.testing.assert_array_equal(rank_p([[0.5], [3.0], [np.inf]], reference, True), [[1.0], [0.5], [0.25]])


@settings(max_examples=40)
@given(
    st.lists(st.integers(-6, 6), min_size=1, max_size=8),
    st.lists(st.integers(-6, 6), min_size=1, max_size=25),
    st.sampled_from(sorted(MAPS)),
    st.booleans(),
)
def test_a_strictly_monotone_map_of_all_models_leaves_p_as_it_is(own, others, name, larger_is_member):
    own, others = np.array(own, float)[:, None], np.array(others, float)[:, None]
    before = rank_p(own, others, larger_is_member)
    rising = MAPS[name]
    np.testing.assert_array_equal(rank_p(rising(own), rising(others), larger_is_member), before)
    np.testing.assert_array_equal(rank_p(-rising(own), -rising(others), not larger_is_member), before)


@pytest.mark.parametrize("n_ref", [19, 40, 99])
@pytest.mark.parametrize("larger_is_member", [False, True])
def test_under_exchangeability_p_keeps_its_level_exactly(n_ref, larger_is_member):
    own, others = scene(2, targets=1, n_ref=n_ref, points=20_000)
    found = rank_p(own, others, larger_is_member)
    for beta in BETAS:
        part, whole = p_values.attained_level(beta, n_ref)
        low, high = binom.ppf([1e-4, 1 - 1e-4], found.size, part / whole)
        assert low <= (found <= beta).sum() <= high


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_ties_and_failed_distances_cost_power_but_not_validity(gaps):
    own, others = scene(3, targets=1, n_ref=40, points=20_000, ties=True, gaps=gaps)
    found = rank_p(own, others, True)
    for beta in BETAS:
        assert (found <= beta).sum() <= binom.ppf(1 - 1e-4, found.size, beta)
    assert (found <= 0.3).mean() < 0.27  # conservative, as six to nine distinct values must be


def test_a_failed_distance_is_never_called_and_points_without_reference_values_are_refused():
    own, others = scene(4, gaps=0.1)
    assert not (rank_p(own, others, True) <= 1.0)[np.isnan(own)].any()
    others[:, 7] = np.nan
    with pytest.raises(BadInput, match=r"1 of 12 candidates \(first: column 7\) have no reference value"):
        rank_p(own, others, True)


@pytest.mark.parametrize("own", [np.zeros((2, 3)), np.zeros((2, 2, 4)), np.zeros((0, 4))])
def test_shapes_that_do_not_fit_are_refused(own):
    with pytest.raises(BadInput, match="allowed:"):
        rank_p(own, np.zeros((5, 4)), True)


def test_no_selected_candidate_gives_no_p_value():
    assert rank_p(np.zeros((3, 0)), np.zeros((5, 0)), True).shape == (3, 0)
    assert smoothed_p(np.zeros((3, 0)), np.zeros((5, 0)), False).shape == (3, 0)


@pytest.mark.parametrize("larger_is_member", [False, True])
def test_decider_equals_rank_p_of_the_chosen_reference_models(larger_is_member):
    own, others = scene(5, n_ref=25, ties=True, gaps=0.15)
    decide = decider(own, others, 0.2, larger_is_member)
    rng = np.random.default_rng(6)
    for rows in [np.arange(25), *rng.integers(25, size=(20, 25))]:
        said = decide(rows)
        np.testing.assert_array_equal(said, rank_p(own, others[rows], larger_is_member) <= 0.2)
    assert decide(np.arange(25)).any() and not decide(np.arange(25))[np.isnan(own)].any()


def test_decider_makes_no_decision_where_the_draw_leaves_no_reference_value():
    own, others = np.full((1, 2), 9.0), np.zeros((4, 2))
    others[1:, 0] = np.nan
    np.testing.assert_array_equal(decider(own, others, 0.5, True)(np.array([1, 2, 3, 3])), [[False, True]])


def test_attainable_levels_and_the_reference_models_they_need():
    assert p_values.attainable(40) == 1 / 41
    p_values.check_level(0.05, 19)
    p_values.check_level(0.01, 99)
    with pytest.raises(BadInput, match=r"beta = 0\.05 cannot be reached with n_ref = 18 .*1/19.* raise n_ref to 19"):
        p_values.check_level(0.05, 18)
    with pytest.raises(BadInput, match=r"raise n_ref to 99 or more, or beta to 0\.0244 or more"):
        p_values.check_level(0.01, 40)
    p_values.check_level(0.0244, 40)
    for beta in (0.0, 1.0):
        with pytest.raises(BadInput, match="between 0 and 1"):
            p_values.check_level(beta, 40)
    with pytest.raises(BadInput, match="n_ref is 0"):
        p_values.attainable(0)


@as_one("n_ref", [19, 32, 40, 99, 100])
def test_the_attained_level_is_the_largest_p_value_within_beta(n_ref):
    possible = np.arange(1, n_ref + 2) / (n_ref + 1)
    for beta in (0.05, 0.07, 0.1, 0.29, 0.3):
        part, whole = p_values.attained_level(beta, n_ref)
        assert part / whole == possible[possible <= beta].max()


def slow_smoothed(own, others):
    """One point at a time with SciPy: losses, small is member."""
    found = np.full(own.shape, np.nan)
    for point in range(own.shape[1]):
        values = others[:, point][~np.isnan(others[:, point])]
        knots = np.unique(values)
        shares = np.array([(values <= knot).mean() for knot in knots])
        curve = PchipInterpolator(knots, shares) if knots.size > 1 else None
        for target in range(len(own)):
            value = own[target, point]
            if np.isnan(value):
                continue
            share = 0.0 if value < knots[0] else 1.0 if value >= knots[-1] else float(curve(value))
            found[target, point] = min(1.0, max(share, 1 / (values.size + 1)))
    return found


@pytest.mark.parametrize(
    ("ties", "gaps"), thinned([(False, 0.0), (True, 0.0), (True, 0.3), (False, 0.3)], [(True, 0.3)])
)
@pytest.mark.parametrize("n_ref", [1, 2, 3, 5, 30])
def test_smoothed_p_is_scipys_monotone_cubic_between_the_knots(n_ref, ties, gaps):
    own, others = scene(n_ref, targets=9, n_ref=n_ref, points=40, ties=ties, gaps=gaps)
    others = others[:, ~np.isnan(others).all(0)]
    own = own[:, : others.shape[1]] * 0.9  # between the knots also where these are tied
    own[0], own[1], own[2] = others[0], np.inf, -np.inf
    expected = slow_smoothed(own, others)
    np.testing.assert_allclose(smoothed_p(own, others, False), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(smoothed_p(-own, -others, True), expected, rtol=0, atol=1e-12)


def test_smoothed_p_of_skewed_losses_rises_and_stays_clamped():
    rng = np.random.default_rng(8)
    others = np.exp(3 * rng.normal(size=(60, 3)))
    grid = np.sort(np.exp(4 * rng.normal(size=(500, 3))), axis=0)
    found = smoothed_p(grid, others, False)
    np.testing.assert_allclose(found, slow_smoothed(grid, others), rtol=0, atol=1e-12)
    assert (np.diff(found, axis=0) >= 0).all() and found.min() == 1 / 61 and found.max() == 1.0


def test_smoothed_p_errs_at_most_as_much_as_stated_under_exchangeability():
    for n_ref in (19, 30, 99):
        own, others = scene(9, targets=1, n_ref=n_ref, points=5_000)
        found = smoothed_p(own, others, False)
        for beta in BETAS:
            bound = (n_ref * beta + 1) / (n_ref + 1)
            assert (found <= beta).sum() <= binom.ppf(1 - 1e-4, found.size, bound)


def test_smoothed_p_refuses_infinite_reference_values():
    with pytest.raises(BadInput, match="1 reference values are infinite"):
        smoothed_p(np.zeros(2), np.array([[0.0, 1.0], [np.inf, 2.0]]), True)
