"""Promised false-positive rates are the found ones, of points that a target did not train on and of null models.

Simulated audits of overfitted models, each with points and models of its own, and few shadows, so that a fit that has
met its null but not the target would be seen at once (the last tests show how much). Targets share what the pool adds
to a point with its shadows; null models do not, nor do strangers.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pytest

from audits.conformance.mia_cases import made_up
from audits.mia.attacks import MIA_ATTACKS
from audits.mia.attacks.base import ShadowAttack
from audits.signals.likelihood_ratio import log_likelihood_ratio
from audits.statistics.conformal import decided
from tests.cases.families import thinned
from tests.cases.few_trees import few_trees
from tests.cases.simulations import fewer, sizes, standard_errors

RATES = (0.01, 0.05, 0.1)
RUNS = {"qmia": 8}
MOST = 80
"""Runs of 120 points: 9 600 that targets did not train on, and twice as many of null models."""
SIZES = sizes(0.1)
# A regression has the null of other attacks, and softened ratios those of the others.
NAMES = thinned(MIA_ATTACKS, set(MIA_ATTACKS) - {*RUNS, "rmia_softened", "rmia_offline"})


@dataclass(frozen=True)
class Rates:
    """Shares called members (runs, rates): each null alone where it is exact, and what both say of either world."""

    twins: np.ndarray
    strangers: np.ndarray
    both: np.ndarray
    p: np.ndarray


@functools.cache
def rates_of(name: str, size: float) -> Rates:
    """Return the rates of an attack: targets at points that they did not train on, then null models."""
    found = []
    for run in range(fewer(RUNS.get(name, MOST), size)):
        made = made_up(9000 + run, points=120, shadows=6)
        finding = MIA_ATTACKS[name]().judge(made.case)
        outside = ~made.member[:, finding.points]
        targets, nulls = outside[:2], outside[2:]
        p, row = finding.p_values(), []
        for rate in RATES:
            alone, both = finding.decide_within(rate), finding.decide(rate)
            beyond = alone if finding.strangers is None else decided(finding.score, finding.strangers, rate)
            row.append(
                [
                    alone[:2][targets].mean(),
                    beyond[2:][nulls].mean(),
                    *(both[:2][targets].mean(), both[2:][nulls].mean()),
                    *((p[:2][targets] <= rate).mean(), (p[2:][nulls] <= rate).mean()),
                ]
            )
        found.append(row)
    table = np.array(found)
    return Rates(table[..., 0], table[..., 1], table[..., 2:4], table[..., 4:])


def error_of(rates: np.ndarray) -> np.ndarray:
    return rates.std(axis=0, ddof=1) / np.sqrt(len(rates))


@SIZES
@pytest.mark.parametrize("name", NAMES)
def test_each_null_keeps_the_promised_rate_in_its_own_world(name: str, size: float) -> None:
    for world in (rates_of(name, size).twins, rates_of(name, size).strangers):
        for place, rate in enumerate(RATES):
            found, error = world[:, place].mean(), error_of(world)[place]
            assert abs(found - rate) < standard_errors(len(world), size) * error + rate / 10, (rate, found, error)
            assert error < rate / 2 / np.sqrt(size) or name in RUNS


@SIZES
@pytest.mark.parametrize("name", NAMES)
def test_decisions_and_p_values_keep_it_in_both_worlds(name: str, size: float) -> None:
    for found in (rates_of(name, size).both, rates_of(name, size).p):
        room = standard_errors(len(found), size) * error_of(found)
        assert (found.mean(0) < np.array(RATES)[:, None] * 1.1 + room).all()


@SIZES
def test_twins_of_the_pool_alone_would_promise_too_much_of_models_that_were_trained_elsewhere(size: float) -> None:
    """What strangers are for."""
    found = []
    for run in range(fewer(MOST, size)):
        made = made_up(9000 + run, points=120, shadows=6)
        found.append(MIA_ATTACKS["lira"]().judge(made.case).decide_within(0.05)[2:].mean())
    assert np.mean(found) > 0.065  # where .05 is promised


@SIZES
def test_a_fit_that_has_met_its_null_but_not_the_target_would_break_the_promise(size: float) -> None:
    """What leaving twins out is for: scores of shadows by a fit to themselves are no null of a target's."""
    found = []
    for run in range(fewer(MOST, size)):
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
                made = made_up(50 + run, points=120, effect=effect, nulls=0)
                with few_trees() if name == "qmia" else nullcontext():
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
    assert len(met) == 5 and not any(fit & asked for fit, asked in zip(met, judged, strict=True))
    assert [len(fit) for fit in met] == [4, 4, 4, 6, 6]  # the last two: scores, and strangers
    assert [len(null[0]) for null in finding.nulls] == [60] * 3  # each point once a pair: in the twin that never saw it
