"""The lower bound on ε holds as often as it promises, where nothing is told and where all that ε allows is."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from audits.errors import BadInput
from audits.statistics.epsilon_bound import chance_of, epsilon_bound
from audits.statistics.pair_guesses import SHARES, pair_guesses
from tests.cases.families import as_one, thinned
from tests.cases.simulations import fewer, sizes

REPEATS = 400
SIZES = sizes(3 / 8)
bound = cache(epsilon_bound)  # of few different counts


def least_share(level: float, repeats: int) -> float:
    """Return how often a rate of ``level`` must at least be seen in ``repeats``, but for one in a thousand."""
    return float(binom.ppf(1e-3, repeats, level)) / repeats


def loop(coins: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The sum of arXiv 2305.08846, appendix D, term by term; ``epsilon`` and ``delta`` are those of a coin."""
    rate = 1 / (1 + math.exp(-epsilon))
    most = total = 0.0
    for i in range(1, right + 1):
        total += binom.pmf(right - i, guesses, rate)
        most = max(most, total / i)
    return float(min(1.0, binom.sf(right - 1, guesses, rate) + most * delta * 2 * coins))


@pytest.mark.parametrize(
    ("delta", "right", "guesses", "coins"),
    thinned(
        (
            (delta, *made)
            for delta in (0.0, 1e-6, 1e-4)
            for made in ((70, 100, 100), (95, 100, 1000), (560, 1000, 1000))
        ),
        [(0.0, 70, 100, 100), (1e-6, 70, 100, 100), (1e-4, 95, 100, 1000), (1e-4, 560, 1000, 1000)],
    ),
)
def test_the_chance_is_that_of_the_theorem_for_a_coin_that_two_points_hang_on(
    delta: float, right: int, guesses: int, coins: int
) -> None:
    for epsilon in (0.0, 0.1, 1.0):
        of_a_coin = loop(coins, guesses, right, 2 * epsilon, (1 + math.exp(epsilon)) * delta)
        assert chance_of(right, guesses, coins, epsilon, delta) == pytest.approx(of_a_coin, rel=1e-9, abs=1e-300)


def test_without_delta_it_is_that_of_clopper_and_pearson() -> None:
    found = epsilon_bound(90, 100, 100, 0.0)
    rate = 1 / (1 + math.exp(-2 * found))
    assert binom.sf(89, 100, rate) == pytest.approx(0.05, rel=0.05) and binom.sf(89, 100, rate) <= 0.05
    assert epsilon_bound(50, 100, 100, 0.0) == 0.0 == epsilon_bound(0, 10, 10, 0.0)


@pytest.mark.long
def test_it_falls_with_delta_and_with_the_level_and_rises_with_the_guesses() -> None:
    assert epsilon_bound(90, 100, 100, 0.0) > epsilon_bound(90, 100, 100, 1e-4) > epsilon_bound(90, 100, 1000, 1e-4)
    assert epsilon_bound(90, 100, 100, 1e-4) > epsilon_bound(90, 100, 100, 1e-4, 0.99) > 0
    assert epsilon_bound(270, 300, 300, 1e-6) > epsilon_bound(90, 100, 100, 1e-6)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("delta", thinned([0.0, 1e-4], [1e-4]))
@SIZES
def test_scores_that_tell_nothing_give_no_bound_as_often_as_is_promised(
    share: float, delta: float, size: float
) -> None:
    repeats = fewer(REPEATS, size)
    rng = np.random.default_rng(0)
    none = 0
    for repeat in range(repeats):
        half = np.zeros(400, bool)
        half[rng.permutation(400)[:200]] = True
        scores = rng.standard_cauchy(400)
        made = pair_guesses(scores, half, share, repeat)
        none += bound(made.right, made.guesses, made.pairs, delta) == 0.0
    assert none / repeats >= least_share(0.95, repeats)


@SIZES
def test_points_that_all_lean_one_way_together_give_no_bound_either(size: float) -> None:
    """A model may be surer, or less sure, of many points at once, whoever is in: guesses hang together then."""
    repeats = fewer(REPEATS, size)
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(4), 100)
    none = 0
    for repeat in range(repeats):
        half = np.zeros(400, bool)
        half[rng.permutation(400)[:200]] = True
        scores = 5 * rng.standard_normal(4)[groups] + rng.standard_normal(400)
        made = pair_guesses(scores, half, 1.0, repeat)
        none += bound(made.right, made.guesses, made.pairs, 0.0) == 0.0
    assert none / repeats >= least_share(0.95, repeats)


@SIZES
def test_points_are_matched_at_random_so_that_a_score_by_their_place_gives_no_bound(size: float) -> None:
    """Matched in order, whoever leads at one pair leads at the next: pairs would be no coins of their own."""
    repeats = fewer(REPEATS, size)
    rng = np.random.default_rng(4)
    none = 0
    for repeat in range(repeats):
        half = np.zeros(400, bool)
        half[rng.permutation(400)[:200]] = True
        made = pair_guesses(np.arange(400.0), half, 1.0, repeat)
        none += bound(made.right, made.guesses, made.pairs, 0.0) == 0.0
    assert none / repeats >= least_share(0.95, repeats)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@SIZES
def test_a_mechanism_that_tells_all_that_it_may_of_a_pair_is_not_charged_with_more(epsilon: float, size: float) -> None:
    """Randomised response about each pair at 2ε, the most that removing one point and adding another may tell."""
    repeats = fewer(REPEATS, size)
    rng = np.random.default_rng(2)
    rate, bounds = 1 / (1 + math.exp(-2 * epsilon)), []
    for _ in range(repeats):
        bounds.append(bound(int(rng.binomial(300, rate)), 300, 300, 0.0))
    assert np.mean(np.array(bounds) <= epsilon) >= least_share(0.95, repeats)
    assert np.median(bounds) > 0.4 * epsilon


def test_guesses_follow_from_the_scores_and_not_from_who_is_in() -> None:
    rng = np.random.default_rng(3)
    half = np.zeros(40, bool)
    half[rng.permutation(40)[:20]] = True
    assert pair_guesses(half.astype(float), half, 1.0, 0).right == 20
    assert pair_guesses(-half.astype(float), half, 1.0, 0).right == 0
    assert pair_guesses(np.where(half, np.inf, -np.inf), half, 0.1, 0) == pair_guesses(10.0 * half, half, 0.1, 0)
    equal = [pair_guesses(np.zeros(40), rng.permutation(half), 1.0, seed).right for seed in range(200)]
    assert abs(np.mean(equal) - 10) < 1
    scores = rng.standard_normal(40)
    assert pair_guesses(scores, half, 0.1, 1).guesses == 2


@pytest.mark.parametrize("share", SHARES)
def test_the_order_of_points_is_no_guess(share: float) -> None:
    """Members first, as files often have it, and scores of few values that say nothing of who is in."""
    rng, half = np.random.default_rng(4), np.arange(400) < 200
    for scores in (np.zeros(400), rng.integers(0, 2, 400).astype(float)):
        found = [pair_guesses(scores, half, share, seed) for seed in range(200)]
        right = np.mean([made.right / made.guesses for made in found])
        inside, outside = scores[half], scores[~half]
        wins = (inside[:, None] > outside).mean(), (inside[:, None] == outside).mean()
        fair = wins[0] + wins[1] / 2 if share == 1.0 else 0.5 if wins[1] == 1.0 else wins[0] / (1 - wins[1])
        assert abs(right - fair) < 0.02, (right, fair)


@as_one("counts", [(3, 2, 2), (1, 3, 2), (0, 0, 2), (-1, 2, 2)])
def test_counts_that_do_not_fit_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(BadInput, match="right ≤ guesses ≤ pairs"):
        epsilon_bound(*counts, delta=0.0)


def test_guesses_about_no_halves_are_refused() -> None:
    with pytest.raises(BadInput, match="n points in the half"):
        pair_guesses(np.zeros(4), np.array([True, False, False, False]), 1.0, 0)
    with pytest.raises(BadInput, match="share is 0"):
        pair_guesses(np.zeros(2), np.array([True, False]), 0, 0)
