"""Precision, coverage and false-positive rate with their intervals: against loops, exact cases and simulation."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from audits.errors import BadInput
from audits.seeds import derive_seed
from audits.statistics import intervals, precision
from audits.statistics.precision import measure, measure_null, t_over_targets, tally
from audits.tmia.p_values import decider, rank_p
from tests.audits.statistics.precision_coverage import interval_coverage
from tests.cases.families import as_one

BETA = 0.1


def scene(seed, targets=6, points=14, n_ref=20, shift=1.5, model=0.3):
    """Signed distances of targets (half of the points are members) and reference models; points and models differ."""
    rng = np.random.default_rng(seed)
    member = np.stack([rng.permutation(points) < points // 2 for _ in range(targets)])
    level = rng.normal(size=points)
    own = level + model * rng.normal(size=(targets, 1)) + rng.normal(size=(targets, points)) + shift * member
    others = level + model * rng.normal(size=(n_ref, 1)) + rng.normal(size=(n_ref, points))
    return own, others, member


def brute(said, member, asked):
    """Counts by a loop over pairs: tp, fp, members, non-members."""
    found = [0, 0, 0, 0]
    for pair in np.ndindex(said.shape):
        if asked[pair]:
            found[0] += said[pair] and member[pair]
            found[1] += said[pair] and not member[pair]
            found[2] += member[pair]
            found[3] += not member[pair]
    return found


@pytest.mark.parametrize("attacked", ["all", "points", "pairs"])
def test_counts_and_rates_are_those_of_a_loop_over_pairs(attacked):
    rng = np.random.default_rng(0)
    said, member = rng.random((5, 9)) < 0.3, rng.random((5, 9)) < 0.5
    given = {"all": None, "points": rng.random(9) < 0.6, "pairs": rng.random((5, 9)) < 0.6}[attacked]
    asked = np.ones((5, 9), bool) if given is None else np.broadcast_to(given, (5, 9))
    tp, fp, members, others = brute(said, member, asked)
    counts = tally(said, member, given)
    assert counts.true_positives.shape == (5,)
    assert [side.sum() for side in (counts.true_positives, counts.false_positives)] == [tp, fp]
    found = measure(lambda rows: said, 3, member, 0.05, given, draws=5)
    assert (found.true_positives, found.false_positives, found.members, found.non_members) == (tp, fp, members, others)
    assert found.precision.value == tp / (tp + fp)
    assert found.coverage.value == tp / members
    assert found.fpr.value == fp / others
    assert found.expected_false_positives == pytest.approx(0.05 * others)
    assert (found.targets, found.candidates) == (5, int(asked.any(0).sum()))


def test_precision_without_decisions_is_undefined():
    member = np.tile([True, False], (4, 3))
    found = measure(lambda rows: np.zeros((4, 6), bool), 3, member, 0.05, draws=20)
    assert found.precision == precision.Rate(None, None, None, None, None, 1.0)
    assert found.coverage.value == found.fpr.value == 0.0
    assert (found.fpr.low, found.fpr.high) == intervals.clopper_pearson(0, 12)
    assert (found.fpr.t_low, found.fpr.t_high) == intervals.clopper_pearson(0, 12)


def test_the_crossed_bootstrap_is_that_of_repeated_rows_and_columns():
    own, others, member = scene(1)
    asked = np.random.default_rng(2).random(own.shape) < 0.8
    asked[:, 3] = False
    found = measure(decider(own, others, BETA, True), 20, member, BETA, asked, draws=60, seed=7)
    points = np.flatnonzero(asked.any(0))
    targets = intervals.bootstrap_weights(6, 60, derive_seed(7, "targets")).astype(int)
    taken = intervals.bootstrap_weights(points.size, 60, derive_seed(7, "candidates")).astype(int)
    rows = np.random.default_rng(derive_seed(7, "contrast models")).integers(20, size=(60, 20))
    values = {"precision": [], "coverage": [], "fpr": []}
    for draw in range(60):
        grid = np.ix_(np.repeat(np.arange(6), targets[draw]), np.repeat(points, taken[draw]))
        said = rank_p(own, others[rows[draw]], True) <= BETA
        tp, fp, members, rest = brute(said[grid], member[grid], asked[grid])
        values["precision"].append(tp / (tp + fp) if tp + fp else np.nan)
        values["coverage"].append(tp / members)
        values["fpr"].append(fp / rest)
    for name, drawn in values.items():
        rate = getattr(found, name)
        shifted = np.array(drawn) - np.nanmean(drawn) + rate.value
        expected = np.clip(np.nanquantile(shifted, [0.025, 0.975]), 0.0, 1.0)
        assert (rate.low, rate.high) == pytest.approx(expected, abs=1e-12)
        assert rate.undefined == np.isnan(drawn).mean()
        assert rate.low < rate.value < rate.high


def test_the_same_seed_gives_the_same_intervals_and_another_seed_others():
    own, others, member = scene(3)
    decide = decider(own, others, BETA, True)
    first, again, other = (measure(decide, 20, member, BETA, draws=50, seed=seed) for seed in (1, 1, 2))
    assert first == again and first.precision != other.precision


def test_draws_without_decisions_are_counted_and_left_out():
    said, member = np.zeros((5, 6), bool), np.ones((5, 6), bool)
    said[0], member[:, 5] = True, False
    found = measure(lambda rows: said, 3, member, 0.05, draws=4000).precision
    assert found.undefined == pytest.approx(0.8**5, abs=0.03)  # the one target with decisions was not drawn
    assert found.value == pytest.approx(5 / 6)  # also the mean of the other draws
    assert (found.low, found.high) == pytest.approx((0.5, 1.0), abs=0.01)
    assert found.t_low is None


def test_one_false_positive_leaves_an_interval_down_to_zero():
    said = np.zeros((5, 6), bool)
    said[0, 0] = True
    found = measure_null(lambda rows: said, 3, 0.05, draws=1000).fpr
    assert found.low == found.t_low == 0.0 and found.value == 1 / 30 < 0.1 < found.high < 0.3


def test_the_t_interval_of_equally_many_trials_is_the_one_over_target_means():
    hits, trials = np.array([3, 5, 2, 6, 4.0]), np.full(5, 20)
    expected = ttest_1samp(hits / 20, 0.0).confidence_interval(0.9)
    assert t_over_targets(hits, trials, 0.9) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_t_interval_of_unequal_trials_is_the_jackknife_of_the_pooled_rate():
    hits, trials = np.array([3, 0, 2, 6.0]), np.array([10, 0, 12, 30.0])
    without = np.array([(hits.sum() - h) / (trials.sum() - n) for h, n in zip(hits, trials, strict=True)])
    error = np.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())
    half = intervals.student_quantile(0.95, 3) * error
    rate = hits.sum() / trials.sum()
    assert t_over_targets(hits, trials) == pytest.approx((max(0, rate - half), rate + half), abs=1e-12)


def test_the_t_interval_says_where_it_sees_nothing():
    assert t_over_targets([0, 0], [0, 0]) is None
    assert t_over_targets([3], [9]) is None
    assert t_over_targets([3, 0, 0], [9, 0, 0]) is None  # one target holds every decision
    assert t_over_targets([9, 3], [9, 3]) == intervals.clopper_pearson(12, 12)


def test_no_false_positive_does_not_make_precision_certain():
    said = np.zeros((5, 6), bool)
    said[:, 0] = True
    found = measure(lambda rows: said, 3, np.tile([True, False], (5, 3)), 0.05, draws=100)
    assert found.precision.value == found.precision.high == 1.0
    assert found.precision.low <= intervals.clopper_pearson(5, 5)[0] < 0.5


def test_another_draw_of_reference_models_widens_the_interval():
    own, others, member = scene(4, targets=100, points=100, model=1.0)
    decide = decider(own, others, BETA, True)
    fixed = decide(np.arange(20))
    whole = measure(decide, 20, member, BETA, draws=300)
    given = measure(lambda rows: fixed, 20, member, BETA, draws=300)
    assert whole.fpr.high - whole.fpr.low > 1.2 * (given.fpr.high - given.fpr.low)
    assert (whole.fpr.t_low, whole.fpr.value) == (given.fpr.t_low, given.fpr.value)


def test_the_interval_holds_the_found_rate_where_few_reference_models_shift_every_draw():
    own, others, member = scene(6, targets=60, points=200, n_ref=19, model=0.0)
    found = measure(decider(own, others, 0.05, True), 19, member, 0.05, draws=100)
    for rate in (found.precision, found.coverage, found.fpr):
        assert rate.low < rate.value < rate.high


def test_null_models_are_judged_as_targets_without_members():
    own, others, _ = scene(5, shift=0.0)
    decide = decider(own, others, BETA, True)
    found = measure_null(decide, 20, BETA, np.arange(14) < 10, draws=100, seed=3)
    said = rank_p(own, others, True) <= BETA
    assert (found.members, found.non_members, found.true_positives) == (0, 60, 0)
    assert found.false_positives == said[:, :10].sum()
    assert found.expected_false_positives == pytest.approx(6.0)
    assert found.fpr.value == found.false_positives / 60 and found.fpr.low < found.fpr.value < found.fpr.high
    assert found.coverage == precision.Rate(None, None, None, None, None, 1.0)


@as_one(
    "said, member, attacked, message",
    [
        (np.zeros((3, 4), bool), np.zeros((3, 5), bool), None, r"decisions are bool \(3, 4\)"),
        (np.zeros((3, 4)), np.zeros((3, 4), bool), None, "decisions are float64"),
        (np.zeros((3, 4), bool), np.zeros((3, 4), int), None, "membership is int64"),
        (np.zeros((3, 4), bool), np.zeros((3, 4), bool), np.ones(3, bool), r"attacked has shape \(3,\)"),
        (np.zeros((3, 4), bool), np.zeros((3, 4), bool), np.zeros(4, bool), "no candidate is attacked"),
    ],
)
def test_what_does_not_fit_is_refused(said, member, attacked, message):
    with pytest.raises(BadInput, match=message):
        measure(lambda rows: said, 3, member, 0.05, attacked, draws=2)


@pytest.mark.long
def test_crossed_intervals_cover_and_intervals_over_targets_alone_do_not():
    held, width = interval_coverage((20, 40, 40, 0.0, 0.7), beta=0.05, repeats=80, draws=100, seed=1)
    assert (held["crossed"] >= 0.95).all()
    assert held["t"][1] <= 0.85 and (width["crossed"] > 1.4 * width["t"]).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "beta"),
    [
        ((10, 8, 100, 1.0, 0.5), 0.05),
        ((20, 10, 100, 1.0, 0.5), 0.05),
        ((20, 40, 19, 0.0, 0.7), 0.05),
        ((40, 20, 40, 2.0, 0.5), 0.05),
        ((40, 50, 100, 0.0, 0.7), 0.05),
        ((20, 30, 100, -1.0, 1.0), 0.1),
        ((100, 300, 40, 0.0, 0.3), 0.05),
        ((100, 300, 19, 0.0, 0.0), 0.05),
    ],
)
def test_coverage_of_the_intervals_over_many_cases(case, beta):
    held, width = interval_coverage(case, beta, repeats=200, draws=150, seed=2)
    print(case, beta, held, width)  # noqa: T201 – the numbers of the docstring
    assert (held["crossed"] >= 0.92).all()
