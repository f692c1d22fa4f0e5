"""Promised false-positive rates are the found ones, of points that a target did not train on and of null models.

Simulated audits of overfitted models, each with points and models of its own, and few shadows, so that a fit that has
met the null models but not the target would be seen at once (a mutation of the last test shows how much).
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from audits.mia.attacks import MIA_ATTACKS
from audits.mia.attacks.base import ShadowAttack
from audits.signals.likelihood_ratio import log_likelihood_ratio
from audits.statistics.conformal import decided
from tests.audits.mia.made_up_cases import made_up

RATES = (0.01, 0.05, 0.1)
RUNS = {"qmia": 12}
MOST = 100
"""Runs of 120 points: 12 000 that targets did not train on, and twice as many of null models."""


@functools.cache
def rates_of(name: str, effect: float = 1.5) -> np.ndarray:
    """Return (runs, 2, 2, rates): shares called members, of non-members and by null models, by decision and by p."""
    found = []
    for run in range(RUNS.get(name, MOST)):
        made = made_up(9000 + run, points=120, shadows=6, effect=effect)
        finding = MIA_ATTACKS[name]().judge(made.case)
        outside = ~made.member[:, finding.points]
        p = finding.p_values()
        found.append(
            [
                [
                    [finding.decide(rate)[rows][outside[rows]].mean() for rate in RATES],
                    [(p[rows][outside[rows]] <= rate).mean() for rate in RATES],
                ]
                for rows in (slice(0, 2), slice(2, 4))
            ]
        )
    return np.array(found)


@pytest.mark.parametrize("place", range(len(RATES)), ids=map(str, RATES))
@pytest.mark.parametrize("name", MIA_ATTACKS)
def test_points_that_a_model_did_not_train_on_are_called_members_at_the_promised_rate(name: str, place: int) -> None:
    for judged in range(2):
        calls = rates_of(name)[:, judged, 0, place]
        error = calls.std(ddof=1) / np.sqrt(len(calls))
        assert abs(calls.mean() - RATES[place]) < 3.5 * error + RATES[place] / 10, (judged, calls.mean(), error)
        assert error < RATES[place] / 2 or name in RUNS


@pytest.mark.parametrize("name", MIA_ATTACKS)
def test_p_values_of_points_that_a_model_did_not_train_on_are_valid(name: str) -> None:
    below = rates_of(name)[:, :, 1]
    error = below.std(axis=0, ddof=1) / np.sqrt(len(below))
    assert (below.mean(0) < np.array(RATES) + 3.5 * error).all()


def test_a_fit_that_has_met_its_null_but_not_the_target_would_break_the_promise() -> None:
    """What leaving twins out is for: scores of shadows by a fit to themselves are no null of a target's."""
    found = []
    for run in range(MOST):
        made = made_up(9000 + run, points=120, shadows=6)
        shadows, half = made.case.known_shadows("lira")
        values, sides = np.stack([shadows.confidence] * 2), np.stack([half, ~half])
        assert made.case.posteriors is not None
        met = np.concatenate([
            log_likelihood_ratio(row, values, sides)[~own] for row, own in zip(shadows.confidence, half, strict=True)
        ])  # fmt: skip
        asked = np.concatenate([
            log_likelihood_ratio(row, values, sides)[~own]
            for row, own in zip(made.case.posteriors.confidence[:2], made.member[:2], strict=True)
        ])  # fmt: skip
        found.append(decided(asked, met, 0.05).mean())
    assert np.mean(found) > 0.06  # where .05 is promised


def test_every_attack_finds_members_and_none_where_there_is_no_effect() -> None:
    for name in MIA_ATTACKS:
        for effect in (1.5, 0.0):
            areas = []
            for run in range(3):
                made = made_up(50 + run, points=120, effect=effect)
                finding = MIA_ATTACKS[name]().judge(made.case)
                member = made.member[0, finding.points]
                inside, outside = finding.score[0, member], finding.score[0, ~member]
                wins = (inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)
                areas.append(wins.mean())
            assert (np.mean(areas) > 0.56) if effect else (abs(np.mean(areas) - 0.5) < 0.06), (name, effect, areas)


def test_attacks_with_shadows_leave_each_pair_out_of_the_fit_that_judges_it() -> None:
    met: list[set[bytes]] = []
    judged: list[set[bytes]] = []

    class Watching(ShadowAttack):
        name = "watching"

        def scores(self, asked, shadows, half):  # type: ignore[no-untyped-def]
            met.append({row.tobytes() for row in shadows.confidence})
            judged.append({row.tobytes() for row in asked.confidence})
            return asked.confidence

    made = made_up(3, shadows=6)
    finding = Watching().judge(made.case)
    assert len(met) == 4 and not any(fit & asked for fit, asked in zip(met, judged, strict=True))
    assert [len(fit) for fit in met] == [4, 4, 4, 6]
    assert [len(null[0]) for null in finding.nulls] == [60] * 3  # each point once a pair: in the twin that never saw it
