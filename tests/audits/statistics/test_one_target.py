"""Intervals of one given model, over points and shadows."""

import numpy as np
import pytest

from audits.errors import BadInput
from audits.statistics.intervals import clopper_pearson, delong_interval
from audits.statistics.one_target import area_p, jackknife_variance, one_target_auc, one_target_rate, one_target_rate_p


def audit_again(rng, shadows, points=200):
    """Scores of one audit of the same model: new points, new shadows, and the scores without each pair of these.

    A shadow errs by a slope of its own in what it says about members, so that whole audits differ by their shadows.
    """
    member = np.arange(points) < points // 2
    answer = rng.normal(0, 1, points) + 0.7 * member
    errors = rng.normal(0, 1.5, shadows)

    def score(kept):
        return answer - errors[kept].mean() * member

    return score(np.arange(shadows)), member, [score(np.delete(np.arange(shadows), [2 * g, 2 * g + 1])) for g in
                                               range(shadows // 2)]  # fmt: skip


def test_intervals_of_one_target_cover_points_and_shadows():
    rng, held, by_points, truth = np.random.default_rng(3), [], [], []
    runs = [audit_again(rng, 16) for _ in range(400)]
    found = [one_target_auc(*run, 0.9) for run in runs]
    truth = np.mean([area for area, _, _ in found])
    held = np.mean([low <= truth <= high for _, low, high in found])
    by_points = np.mean([low <= truth <= high for low, high in (delong_interval(*run[:2], 0.9) for run in runs)])
    assert by_points < 0.7 < 0.87 < held < 0.96


def test_a_rate_covers_points_and_shadows():
    rng = np.random.default_rng(4)
    runs = [audit_again(rng, 16) for _ in range(400)]
    calls = [(full[member] > 1, [each[member] > 1 for each in without]) for full, member, without in runs]
    truth = np.mean([call.mean() for call, _ in calls])
    ends = [one_target_rate(call, without, 0.9) for call, without in calls]
    assert 0.87 < np.mean([low <= truth <= high for _, low, high in ends]) < 0.97
    alone = [one_target_rate(call, (), 0.9) for call, _ in calls]
    assert np.mean([low <= truth <= high for _, low, high in alone]) < 0.7


def test_without_shadows_points_alone_count():
    rng = np.random.default_rng(5)
    full, member, _ = audit_again(rng, 4)
    _, low, high = one_target_auc(full, member)
    assert (low, high) == pytest.approx(delong_interval(full, member), abs=2e-3)
    calls = np.arange(50) < 5
    assert one_target_rate(calls) == pytest.approx((0.1, *clopper_pearson(5, 50)))


def test_where_no_variance_can_be_seen_counts_speak():
    assert one_target_auc([0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 1]) == (1.0, *clopper_pearson(3, 3))
    assert one_target_rate(np.zeros(20), [np.zeros(20), np.ones(20)]) == (0.0, *clopper_pearson(0, 20))
    with pytest.raises(BadInput, match="one point or more"):
        one_target_rate([])


def test_the_jackknife_of_means_of_pairs_is_the_variance_of_a_mean():
    values = np.random.default_rng(6).normal(size=8)
    without = [np.delete(values, i).mean() for i in range(8)]
    assert jackknife_variance(without) == pytest.approx(values.var(ddof=1) / 8)
    assert jackknife_variance([0.3]) == 0.0


def test_the_p_value_of_a_rate_is_that_of_its_interval():
    rng = np.random.default_rng(7)
    full, member, without = audit_again(rng, 16)
    calls, fewer = full[member] > 1, [each[member] > 1 for each in without]
    _, low, high = one_target_rate(calls, fewer, 0.9)
    assert one_target_rate_p(calls, low, fewer, 0.9) == pytest.approx(0.05, abs=1e-6)
    assert one_target_rate_p(calls, high, fewer, 0.9, below=True) == pytest.approx(0.05, abs=1e-6)
    assert one_target_rate_p(calls, low / 2, fewer, 0.9) < 0.05 < one_target_rate_p(calls, low / 2 + high / 2, fewer)
    assert one_target_rate_p(np.zeros(20), 0.05) == 1.0


def test_an_auc_whose_interval_holds_one_half_is_not_off_chance():
    """Permutations of points hold the shadows still, which are a part of the interval."""
    assert area_p(0.001, (0.424, 0.339, 0.509)) > 0.05 > area_p(0.001, (0.424, 0.349, 0.499))
    assert area_p(0.2, (0.424, 0.349, 0.499)) == 0.2
