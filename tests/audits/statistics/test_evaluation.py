"""ROC, intervals, nulls and the table of results: against slow forms, oracles and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp
from sklearn.metrics import roc_auc_score, roc_curve

from audits.errors import BadInput
from audits.statistics import intervals, roc
from audits.statistics.intervals import ibragimov_mueller_t, nested_t
from tests.audits.statistics.interval_coverage import auc_coverage, rate_coverage

tied = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0]), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda flags: 0 < sum(flags) < len(flags)),
    )
)


@settings(max_examples=20)
@given(tied)
def test_auc_counts_pairs_with_ties_as_one_half(case):
    scores, member = np.array(case[0]), np.array(case[1])
    naive = np.mean([(a > b) + 0.5 * (a == b) for a in scores[member] for b in scores[~member]])
    assert roc.auc(scores, member) == pytest.approx(naive, abs=1e-12)
    assert roc.auc(scores, member) == pytest.approx(roc_auc_score(member, scores), abs=1e-12)


@settings(max_examples=20)
@given(tied)
def test_roc_has_one_vertex_per_distinct_score_and_auc_as_its_area(case):
    scores, member = np.array(case[0]), np.array(case[1])
    curve = roc.roc(scores, member)
    fpr, tpr, thresholds = roc_curve(member, scores, drop_intermediate=False)
    np.testing.assert_allclose(curve.fpr, fpr, atol=1e-12)
    np.testing.assert_allclose(curve.tpr, tpr, atol=1e-12)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(roc.auc(scores, member), abs=1e-12)


@settings(max_examples=25)
@given(tied, st.sampled_from([0.03, 0.1, 0.25, 0.5, 0.77]))
def test_tpr_at_fpr_is_the_best_randomised_test_at_that_level(case, fpr):
    scores, member = np.array(case[0]), np.array(case[1])
    plans = []  # every rule "call all above c, a share of those at c" that alarms on exactly fpr of the nulls
    for c in np.unique(scores):
        above, at = (scores > c), (scores == c)
        missing = fpr - above[~member].mean()
        if at[~member].any() and -1e-12 <= missing <= at[~member].mean() + 1e-12:
            share = missing / at[~member].mean()
            plans.append(above[member].mean() + share * at[member].mean())
    assert float(roc.tpr_at_fpr(roc.roc(scores, member), fpr)) == pytest.approx(max(plans), abs=1e-9)


@settings(max_examples=40)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=2, max_size=12), st.floats(0.0, 1.0))
def test_randomised_call_keeps_its_level_exactly_under_exchangeability(scores, fpr):
    values = np.array(scores)
    alarms = [roc.randomised_call(values[[i]], np.delete(values, i), fpr)[0] for i in range(values.size)]
    assert np.mean(alarms) == pytest.approx(fpr, abs=1e-9)


def test_pairwise_wins_hold_the_pooled_and_the_within_target_auc():
    rng = np.random.default_rng(0)
    scores, member, cluster = rng.integers(0, 6, 90), rng.random(90) < 0.4, rng.integers(0, 4, 90)
    won, pairs = roc.pairwise_wins(scores, member, cluster)
    assert won.sum() / pairs.sum() == pytest.approx(roc.auc(scores, member), abs=1e-12)
    np.testing.assert_allclose(np.diag(won) / np.diag(pairs), roc.within_auc(scores, member, cluster), atol=1e-12)


def test_cross_fitted_threshold_ignores_the_points_it_judges():
    rng = np.random.default_rng(1)
    scores, member, cluster = rng.normal(size=120), np.tile(np.arange(40) < 20, 3), np.repeat([0, 1, 2], 40)
    before = roc.cross_fitted_tpr(scores, member, cluster, 0.1)
    scores[(cluster == 1) & ~member] += 100.0
    after = roc.cross_fitted_tpr(scores, member, cluster, 0.1)
    assert after[1] == before[1]
    assert after[0] < before[0] and after[2] < before[2]
    with pytest.raises(BadInput, match="at least two targets"):
        roc.cross_fitted_tpr(scores, member, np.zeros(120), 0.1)


def test_cross_fitted_tpr_of_useless_scores_is_the_fpr():
    rng = np.random.default_rng(2)
    member, cluster = np.tile(np.arange(40) < 20, 5), np.repeat(np.arange(5), 40)
    rates = [roc.cross_fitted_tpr(rng.normal(size=200), member, cluster, 0.05).mean() for _ in range(400)]
    assert np.mean(rates) == pytest.approx(0.05, abs=0.005)


def test_an_fpr_that_the_sample_cannot_resolve_is_refused_with_the_number_needed():
    assert [roc.required_nulls(fpr) for fpr in (0.1, 0.05, 0.01, 0.001, 0.03)] == [100, 200, 1000, 10000, 334]
    roc.check_resolvable(0.05, 200)
    with pytest.raises(BadInput, match=r"0\.01 cannot be measured with 400 unseen points: it needs at least 1000"):
        roc.check_resolvable(0.01, 400)


@pytest.mark.parametrize(
    ("scores", "member", "message"),
    [([0.0, np.nan], [1, 0], "not a number"), ([1.0, 2.0], [1, 1], "both groups"), ([1.0], [1, 0], "equal length")],
)
def test_scores_that_mean_nothing_are_refused(scores, member, message):
    with pytest.raises(BadInput, match=message):
        roc.auc(scores, member)


@settings(max_examples=20)
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.9, 0.95]))
def test_clopper_pearson_is_the_exact_binomial_interval(counts, level):
    exact = binomtest(*counts).proportion_ci(level, method="exact")
    assert intervals.clopper_pearson(*counts, level) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_jackknife_of_a_mean_is_the_t_interval_over_targets():
    values = np.array([0.61, 0.55, 0.66, 0.58, 0.71])
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert intervals.ibragimov_mueller_t(values) == pytest.approx((expected.low, expected.high), abs=1e-12)
    mean = intervals.mean_over_clusters(values)
    assert intervals.cluster_jackknife_t(mean, 5) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_bootstrap_of_the_pooled_auc_equals_the_slow_resampling_of_whole_targets():
    rng = np.random.default_rng(3)
    scores, member, cluster = rng.normal(size=60), np.tile(np.arange(15) < 7, 4), np.repeat(np.arange(4), 15)
    values = []
    for taken in intervals.bootstrap_weights(4, 50, seed=9).astype(int):
        rows = np.concatenate([np.flatnonzero(cluster == g) for g in range(4) for _ in range(taken[g])])
        values.append(roc.auc(scores[rows], member[rows]))
    fast = intervals.cluster_bootstrap(
        intervals.pooled_auc(*roc.pairwise_wins(scores, member, cluster)), 4, draws=50, seed=9
    )
    assert fast == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=1e-12)


def test_rate_interval_widens_with_differences_between_targets_and_survives_zero():
    size = np.full(8, 50.0)
    alike = intervals.clustered_rate(np.full(8, 5), size)
    apart = intervals.clustered_rate(np.array([0, 0, 0, 0, 10, 10, 10, 10]), size)
    exact = intervals.clopper_pearson(40, 400)
    assert apart[0] < alike[0] < exact[0] < exact[1] < alike[1] < apart[1]
    assert intervals.clustered_rate(np.zeros(8), size) == intervals.clopper_pearson(0, 400)


@pytest.mark.long
def test_default_intervals_cover_and_the_percentile_bootstrap_does_not():
    area = auc_coverage(targets=5, mean=0.6, spread=0.03, shift=0.0, repeats=200, draws=100, seed=1)
    assert area["t"] >= 0.92 and area["bootstrap"] <= 0.90
    rate = rate_coverage(targets=5, rate=0.05, spread=0.03, repeats=300, draws=100, seed=1)
    assert rate["clustered_rate"] >= 0.95 > rate["t"] > rate["bootstrap"]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("targets", [5, 8])
def test_coverage_simulation(targets):
    for mean, spread, shift in ((0.5, 0.0, 0.0), (0.6, 0.02, 0.0), (0.75, 0.04, 0.0), (0.6, 0.02, 1.0)):
        found = auc_coverage(targets, mean, spread, shift, repeats=1000, draws=400, seed=1)
        print(f"AUC {targets} targets, mean {mean}, sd {spread}, shift {shift}:", found)  # noqa: T201 – the numbers of the docstring
        assert 0.93 <= found["t"] <= 0.97 and found["bootstrap"] < 0.925
    for rate, spread in ((0.05, 0.0), (0.05, 0.03), (0.2, 0.0), (0.2, 0.06)):
        found = rate_coverage(targets, rate, spread, repeats=2000, draws=400, seed=1)
        print(f"rate {targets} targets, mean {rate}, sd {spread}:", found)  # noqa: T201 – the numbers of the docstring
        assert found["clustered_rate"] >= 0.945 and found["bootstrap"] < 0.92


NESTED_REPEATS = 2000


@pytest.mark.parametrize(("between", "plain"), [(0.0, (0.93, 0.97)), (0.5, (0.80, 0.88)), (1.0, (0.68, 0.77))])
def test_an_interval_over_seeds_and_pools_covers_whether_seeds_differ_or_not(
    between: float, plain: tuple[float, float]
) -> None:
    """A t interval over all values does so only where they do not."""
    rng = np.random.default_rng(0)
    held = np.zeros(2)
    for _ in range(NESTED_REPEATS):
        values = 0.3 + between * rng.standard_normal((5, 1)) + rng.standard_normal((5, 5))
        for place, (low, high) in enumerate((nested_t(values), ibragimov_mueller_t(values.ravel()))):
            held[place] += low <= 0.3 <= high
    nested, flat = held / NESTED_REPEATS
    assert 0.935 <= nested <= 0.965
    assert plain[0] <= flat <= plain[1]


def test_an_interval_over_seeds_and_pools_needs_a_table_and_two_seeds() -> None:
    for values in ([1.0, 2.0], [[1.0, 2.0]], [[], []]):
        with pytest.raises(BadInput):
            nested_t(values)
