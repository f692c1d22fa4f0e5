"""A target that never saw a point is judged as pseudo-targets are that never saw it: promised rates are the found ones.

Simulated audits with an effect of membership, each with points and models of its own; the rate is that of the points
which the target never saw. Four models a half leave two outside, so that one reference more for the target than for
the null would be seen at once.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from audits.apollo.attacks import ATTACKS, Finding
from audits.apollo.attacks.calibration import leave_one_out
from audits.apollo.attacks.outside import stand_ins
from tests.audits.apollo.attacks.rules import BY_ANOTHER_RULE
from tests.cases.families import as_one, thinned
from tests.cases.simulations import fewer, sizes, standard_errors
from tests.cases.synthetic_evidence import evidence_for, make_evidence

RATES = (0.01, 0.05, 0.1)
RUNS, POINTS = 60, 200  # 6 000 points that no target saw
FEWER = {"u_mia_shadow": 15}  # ten support vector machines a run
SIZES = sizes(0.15)
PROMISING = thinned(
    sorted(set(ATTACKS) - {"u_mia_oracle"}), set(BY_ANOTHER_RULE) - {"ruli", "apollo_under", "lira_offline"}
)  # an oracle's null are the judged points


@functools.cache
def rates_of(name: str, size: float) -> np.ndarray:
    """Return (runs, 2, rates): the share of unseen points called forgotten, by decisions and by p-values."""
    found = []
    for run in range(fewer(FEWER.get(name, RUNS), size)):
        evidence, forgotten = make_evidence(5000 + run, POINTS, models=4, effect=1.5, kinds=ATTACKS[name].reads)
        finding = ATTACKS[name]().judge(evidence)
        p = finding.p_values()[~forgotten]
        found.append(
            [[finding.decide(rate)[~forgotten].mean() for rate in RATES], [(p <= rate).mean() for rate in RATES]]
        )
    return np.array(found)


@SIZES
@pytest.mark.parametrize("name", PROMISING)
@as_one("place", range(len(RATES)))
def test_points_that_a_target_never_saw_are_called_forgotten_at_the_promised_rate(
    name: str, place: int, size: float
) -> None:
    decisions = rates_of(name, size)[:, 0, place]
    error = decisions.std(ddof=1) / np.sqrt(len(decisions))
    assert abs(decisions.mean() - RATES[place]) < standard_errors(len(decisions), size) * error
    assert error < RATES[place] / 4 / np.sqrt(size)


@SIZES
@pytest.mark.parametrize("name", PROMISING)
@as_one("place", range(len(RATES)))
def test_p_values_of_points_that_a_target_never_saw_are_valid(name: str, place: int, size: float) -> None:
    below = rates_of(name, size)[:, 1, place]
    assert below.mean() < RATES[place] + standard_errors(len(below), size) * below.std(ddof=1) / np.sqrt(len(below))


def test_every_point_has_its_own_stand_ins_in_order_and_starts_again_where_it_has_fewer() -> None:
    outside = np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0], [1, 0, 1]], dtype=bool)
    assert stand_ins(outside).tolist() == [[0, 1, 0], [2, 1, 1], [3, 1, 3]]


def test_a_target_that_answers_as_its_stand_in_does_gets_its_score() -> None:
    """The very definition: the same answers in the same place are judged by the same references."""
    for name, field in (("apollo", "pseudo"), ("single_query", "pseudo"), ("random_directions", "pseudo")):
        evidence = evidence_for(name, 3, 30)
        walks = evidence.walk(ATTACKS[name].reads[0])
        for slot in range(2):
            places = [stand_ins(outside)[slot] for outside in walks.outside]
            for g, place in enumerate(places):
                walks.target[g] = getattr(walks, field)[g, place, np.arange(30)]
            check(ATTACKS[name]().judge(evidence), slot, places, list(walks.outside))


@pytest.mark.parametrize("name", ["lira", "lira_offline", "u_lira", "u_lira_per_point", "ruli"])
def test_a_target_with_the_posteriors_of_its_stand_in_gets_its_score(name: str) -> None:
    evidence = evidence_for(name, 3, 30)
    seen = evidence.posterior()
    for slot in range(4):
        place = stand_ins(seen.outside)[slot]
        seen.target[:] = seen.shadow[place, np.arange(30)]
        check(ATTACKS[name]().judge(evidence), slot, [place], [seen.outside])


def check(finding: Finding, slot: int, places: list[np.ndarray], outsides: list[np.ndarray]) -> None:
    """Compare the scores of one slot with the null of the stand-ins; parts run over walks, then over slots."""
    slots = len(finding.parts) // len(places)
    for g, (place, outside) in enumerate(zip(places, outsides, strict=True)):
        score, null = finding.parts[g * slots + slot]
        own = np.full(outside.shape, np.nan)
        own[outside] = null
        np.testing.assert_array_equal(score, own[place, np.arange(len(place))])


def test_without_a_mate_the_rows_of_the_side_but_its_own_stand_in() -> None:
    rows = np.random.default_rng(1).random((2, 5, 1))
    side = np.array([[True] * 5, [False] * 5])
    found = leave_one_out(rows, side)
    for k in range(5):
        np.testing.assert_allclose(found[0, k, 0], np.delete(rows[0, :, 0], k).mean(), rtol=0, atol=1e-12)
