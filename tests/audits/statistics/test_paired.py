"""Differences between two runs: how often intervals hold, and that pairing cancels what is shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audits.errors import BadInput
from audits.statistics.intervals import delong_interval
from audits.statistics.judged import Judged
from audits.statistics.paired import AUC, FPR, PRECISION, TPR, difference, measured
from audits.statistics.shared_targets import shared_targets
from audits.statistics.summary import paired_difference
from tests.audits.statistics.paired_coverage import CASES, Case, covered, runs

BY_NAME = {case.name: case for case in CASES}
PAIRED, UNPAIRED = BY_NAME["targets and their points"], BY_NAME["nothing"]


@pytest.mark.long
@pytest.mark.parametrize("case", [PAIRED, UNPAIRED], ids=["paired", "unpaired"])
def test_intervals_hold_the_difference_and_equal_runs_rarely_differ(case: Case) -> None:
    small = replace(case, size=24)
    held, power = covered(small, 150, 1)
    assert 0.90 <= held <= 0.99
    assert covered(replace(small, gain=0.0), 150, 2)[1] <= 0.11
    assert power > 0.2


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_intervals_hold_as_often_as_the_module_says(case: Case) -> None:
    rates = covered(case, 300, 2, TPR)
    equal, wrong = covered(replace(case, gain=0.0), 300, 3)
    shares = [covered(case, 300, 1)[0], rates[0], equal]
    print(f"{case.name:45} hold {min(shares):.3f}–{max(shares):.3f}, differ {wrong:.3f}")  # noqa: T201 - a record
    assert 0.92 <= min(shares) <= max(shares) <= 0.985
    assert 0.01 <= wrong <= 0.08


def test_pairing_over_targets_is_the_t_interval_of_their_differences() -> None:
    a, b = runs(PAIRED, np.random.default_rng(0))
    areas = [measured(each, AUC) for each in (a, b)]
    by_target = [dict(enumerate(each.value + each.whole * each.units.size)) for each in areas]
    expected = paired_difference(*by_target)
    found = difference(*areas, shared_targets(a, b))
    assert (found.value, found.low, found.high, found.p) == pytest.approx(
        (expected.mean, expected.low, expected.high, expected.p)
    )
    assert found.shared == 8 and found.shared_points == 480 and found.degrees == 7


def test_one_target_gives_the_interval_of_delong() -> None:
    case = replace(BY_NAME["nothing, one target each"], size=80)
    a, b = runs(case, np.random.default_rng(3))
    worst = replace(b, scores=np.where(b.member, 1.0, 0.0), point=np.arange(80) + 80)
    found = difference(measured(a, AUC), measured(worst, AUC), [], points=False)
    low, high = delong_interval(a.scores, a.member)
    assert (found.low, found.high) == pytest.approx((low - 1.0, high - 1.0), abs=1e-6)
    assert found.degrees is None


def test_what_runs_share_cancels() -> None:
    a, b = runs(PAIRED, np.random.default_rng(1))
    areas = measured(a, AUC), measured(b, AUC)
    paired, unpaired = difference(*areas, shared_targets(a, b)), difference(*areas, [], points=False)
    assert paired.low is not None and unpaired.low is not None
    assert paired.value == unpaired.value and paired.value - paired.low < 0.8 * (unpaired.value - unpaired.low)
    same = difference(areas[0], areas[0], shared_targets(a, a))
    assert (same.value, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)


def test_a_difference_of_constants_has_no_interval() -> None:
    member, target = np.arange(12) % 2 == 0, np.zeros(12, np.int64)
    calls = {"": member.astype(float)}
    a, b = (Judged("base", "x", np.zeros(12), member, target, np.arange(12) + far, calls) for far in (0, 12))
    for metric, value in ((TPR, 1.0), (FPR, 0.0)):
        found = difference(measured(a, metric), measured(b, metric), [])
        assert (found.a, found.b, found.low, found.high, found.p) == (value, value, None, None, 1.0)


def test_targets_are_shared_if_points_and_members_are() -> None:
    a, b = runs(PAIRED, np.random.default_rng(1))
    assert shared_targets(a, b) == list(range(8))
    turned = np.random.default_rng(0).permutation(len(a.scores))
    assert set(shared_targets(a.on(turned), b)) == set(range(8))
    other = b.member.copy()
    other[np.flatnonzero(b.target == 3)] = ~other[b.target == 3]
    assert shared_targets(a, replace(b, member=other)) == [0, 1, 2, 4, 5, 6, 7]
    assert shared_targets(a, replace(b, point=None)) == []


def test_rates_are_those_of_all_calls_and_undefined_ones_are_refused() -> None:
    member = np.array([True, True, False, False])
    judged = Judged("base", "x", np.zeros(4), member, np.zeros(4, int), np.arange(4), {"": np.array([1.0, 0, 1, 0])})
    assert [measured(judged, metric).value for metric in (TPR, FPR, PRECISION)] == [0.5, 0.5, 0.5]
    with pytest.raises(BadInput, match="0/0"):
        measured(replace(judged, decisions={"": np.zeros(4)}), PRECISION)
    called = replace(judged, decisions={"": np.ones(4)})
    found = difference(measured(called, TPR), measured(replace(called, decisions={"": np.zeros(4)}), TPR), [0])
    assert found.value == 1.0 and found.low is None and found.p is None
