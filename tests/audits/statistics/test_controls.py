"""The one rule of controls: p-values that keep their level on clustered counts, corrected over all cells."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, t, ttest_1samp

from audits.statistics import intervals
from audits.statistics.conformal import decided
from audits.statistics.controls import clustered_rate_p, corrected, interval_p, off, rate_p
from audits.statistics.one_target import one_target_rate_p
from tests.cases.families import thinned


def test_one_cluster_is_an_exact_binomial_test() -> None:
    for hits, size, promised in ((9, 100, 0.05), (5, 100, 0.05), (1, 20, 0.2), (20, 20, 0.5)):
        exact = binomtest(hits, size, promised, alternative="greater").pvalue
        assert clustered_rate_p([hits], [size], promised) == pytest.approx(exact, rel=1e-9)
        less = binomtest(hits, size, promised, alternative="less").pvalue
        assert clustered_rate_p([hits], [size], promised, below=True) == pytest.approx(less, rel=1e-9)
    assert clustered_rate_p([0], [100], 0.05) == 1.0 == clustered_rate_p([100], [100], 0.05, below=True)


def test_clustered_p_values_say_what_the_interval_says_and_keep_their_level() -> None:
    rng = np.random.default_rng(0)
    size, promised, found = np.full(8, 50), 0.05, []
    for _ in range(2000):
        hits = rng.binomial(size, rng.beta(2.0, 38.0, size.size))  # rates that vary by target around the promise
        low, high = intervals.clustered_rate(hits, size)
        found.append(clustered_rate_p(hits, size, promised))
        assert (found[-1] <= 0.025) == (low >= promised)
        assert (clustered_rate_p(hits, size, promised, below=True) <= 0.025) == (high <= promised)
    kept = np.array(found)
    assert all((kept <= level).mean() <= level + 2 * np.sqrt(level / 2000) for level in (0.001, 0.01, 0.05))
    pooled = binomtest(32, 400, promised, alternative="greater").pvalue
    assert clustered_rate_p([0, 0, 0, 0, 8, 8, 8, 8], size, promised) > 10 * pooled  # all in four targets


@pytest.mark.parametrize(("null", "judged"), thinned([(1000, 1000), (2000, 500), (200, 1000)], [(1000, 1000)]))
def test_a_threshold_set_by_known_points_is_no_fixed_one(null: int, judged: int) -> None:
    """Of an attack that keeps its promise on average over thresholds; as if the threshold were fixed, it is accused."""
    rng = np.random.default_rng(1)
    said: dict[int, list[float]] = {0: [], null: []}
    for _ in range(1000):
        calls = decided(rng.normal(size=judged), rng.normal(size=null), 0.05)
        for known, found in said.items():
            p = one_target_rate_p(calls, 0.05, known=known)
            assert p == pytest.approx(clustered_rate_p([calls.sum()], [judged], 0.05, known=known))
            found.append(p)
    kept, fixed = (np.array(said[known]) for known in (null, 0))
    for level in (0.05, 0.05 / 3):
        assert (kept <= level).mean() <= level + 2 * np.sqrt(level / 1000)
    assert (fixed <= 0.05 / 3).mean() > (kept <= 0.05 / 3).mean()
    if null == judged:  # as docs/explanation/mia.md has it
        assert 0.08 < (fixed <= 0.05).mean() < 0.13 and 0.04 < (fixed <= 0.05 / 3).mean() < 0.08


def test_the_tail_of_an_interval_meets_its_end_and_goes_on_beyond_it() -> None:
    for degrees in (1, 9, 1e9):
        assert rate_p(0.08, 0.05, 0.05, 0.95, degrees) == pytest.approx(0.025)
        assert rate_p(0.08, 0.06, 0.05, 0.95, degrees) < 0.025 < rate_p(0.08, 0.04, 0.05, 0.95, degrees)
    error = 0.02 / t.ppf(0.975, 9)
    assert rate_p(0.08, 0.06, 0.05, 0.95, 9) == pytest.approx(t.sf(0.03 / error, 9))
    assert rate_p(0.05, 0.01, 0.05, 0.95, 9) == rate_p(0.0, 0.0, 0.05, 0.95, 9) == 1.0
    assert rate_p(1.0, 1.0, 0.05, 0.95, 9) == 0.0


def test_a_t_interval_gives_back_its_test() -> None:
    values = np.array([0.52, 0.55, 0.49, 0.58])
    low, high = intervals.ibragimov_mueller_t(values)
    exact = ttest_1samp(values, 0.5).pvalue
    assert interval_p(values.mean(), low, high, 0.5, 0.95, 3) == pytest.approx(exact)
    assert interval_p(values.mean(), low, 0.54, 0.5, 0.95, 3) == pytest.approx(exact)  # cut where the scale ends
    assert interval_p(0.6, 0.5, 0.7, 0.5, 0.95, 3) == pytest.approx(0.05)
    assert interval_p(0.5, 0.5, 0.5, 0.5, 0.95, 3) == 1.0 and interval_p(0.6, 0.6, 0.6, 0.5, 0.95, 3) == 0.0


def test_one_cell_of_many_alarms_only_when_the_correction_leaves_it_standing() -> None:
    lucky = corrected([0.01, *[0.5] * 30, None])
    assert lucky[0] == pytest.approx(0.31) and lucky[-1] is None
    assert not any(off(p, 0.95) for p in lucky)
    broken = corrected([0.001, *[0.5] * 30])
    assert [off(p, 0.95) for p in broken] == [True, *[False] * 30]
    assert not off(None, 0.95) and corrected([]) == []
