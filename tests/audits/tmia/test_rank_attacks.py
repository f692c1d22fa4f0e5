"""Membership attacks that rank among reference models: against loops, at ties and failures, and under known truths."""

from __future__ import annotations

import math
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.interpolate import PchipInterpolator

from audits.signals.loss import losses
from audits.tmia.answers import Answers
from audits.tmia.attacks import ATTACKS, JUDGED, JudgeSettings
from audits.tmia.attacks.noise_votes import NoiseVotes
from audits.tmia.attacks.pmia import Pmia
from audits.tmia.attacks.tmia import fitted_map, fitted_pairs
from audits.tmia.p_values import smoothed_p
from audits.tmia.smoothed_decider import smoothed_decider
from tests.audits.tmia.made_up_answers import BETA, RANKED, ruling, scene, synthetic_answers, usual
from tests.cases.families import as_one, thinned


def slow_p(own: float, others: np.ndarray) -> float:
    left = [other for other in others.tolist() if not math.isnan(other)]
    return math.nan if math.isnan(own) or not left else (1 + sum(other >= own for other in left)) / (1 + len(left))


@pytest.mark.parametrize("name", ["tmia", "tmia_distance", "tmia_posterior", "noise_votes"])
def test_rank_attacks_are_a_loop_over_models_and_points(name: str) -> None:
    made, found = scene(asked=40, failed=0.05), usual(name)
    labels, seen = made.answers.labels, made.answers.posteriors
    found_map = fitted_map(labels, JudgeSettings(BETA))
    for group in ("target", "null", "reference"):
        for model, place in np.ndindex(found.statistic[group].shape):
            if name == "tmia_posterior":
                wanted = math.log(seen.posterior[group][model, place, made.label[place]])
            elif name == "noise_votes":
                wanted = labels.votes[group][model, place]
            else:
                wanted = labels.distance[group][model, place]
                if name == "tmia":
                    confidence = 1 / (1 + math.exp(-(found_map.a + found_map.b * wanted)))
                    wanted = math.log(min(max(confidence, 1e-7), 1 - 1e-7))
            assert found.statistic[group][model, place] == pytest.approx(wanted, rel=1e-9, nan_ok=True)
            if group != "reference":
                p = slow_p(found.statistic[group][model, place], found.statistic["reference"][:, place])
                assert found.p[group][model, place] == pytest.approx(p, abs=1e-12, nan_ok=True)


def test_the_logistic_map_leaves_ranks_as_they_are_but_for_ties() -> None:
    mapped, plain = usual("tmia"), usual("tmia_distance")
    for group in JUDGED:
        np.testing.assert_array_equal(np.isnan(mapped.p[group]), np.isnan(plain.p[group]))
        top = mapped.statistic["reference"].max()
        tied = mapped.statistic[group] >= top  # beyond the clip all confidences are equal
        np.testing.assert_array_equal(mapped.p[group][~tied], plain.p[group][~tied])
        np.testing.assert_array_equal(mapped.decision[group][~tied], plain.decision[group][~tied])
        assert (mapped.p[group] >= plain.p[group])[tied].all()
    assert mapped.decision["target"].sum() > 30


@as_one("name", RANKED)
@as_one("star", ["true", "own"])
def test_without_membership_a_share_beta_is_called(name: str, star: str) -> None:
    made = scene(candidates=200, targets=10, null=10, lift=0.0, star=star)
    found = ruling(name, made.answers)
    for group in JUDGED:
        rate = found.decision[group].mean()
        most = BETA + 0.02 + (0.02 if "smooth" in name or name == "pmia" else 0.0)
        assert (0.0 if name == "noise_votes" else 0.075) < rate < most  # votes are tied at points that all hold on to


FOUND = (*RANKED, "gmia1", "yeom", "label_gap")


@pytest.mark.parametrize("name", thinned((*FOUND, "gmia2", "fmia"), FOUND))
def test_a_planted_signal_is_found(name: str) -> None:
    made, found = scene(asked=40, failed=0.05), usual(name)
    # These know no class: where models are wrong, a member is less sure of the wrong one, which misleads them
    kept = (
        ~made.hard[found.rows] if name in ("gmia1", "gmia2", "fmia", "tmia_vector") else np.ones(len(found.rows), bool)
    )
    member = made.membership[:, found.rows][:, kept]
    called = found.decision["target"][:, kept]
    hits, alarms = (called & member).sum() / member.sum(), (called & ~member).sum() / (~member).sum()
    assert hits > alarms + 0.2
    if name in RANKED:
        assert hits > 0.5 and hits / (hits + alarms) > 0.75


def test_the_sign_of_the_distance_is_essential_on_points_that_models_get_wrong() -> None:
    made = scene()
    labels = made.answers.labels
    hard = made.hard[labels.rows]
    member = made.membership[:, labels.rows][:, hard]
    unsigned = replace(labels, distance={group: np.abs(values) for group, values in labels.distance.items()})
    shares = []
    for given_labels in (labels, unsigned):
        said = ruling("tmia_distance", Answers(given_labels)).decision["target"][:, hard]
        shares.append(((said & member).sum() / member.sum(), (said & ~member).sum() / (~member).sum()))
    (found, alarms), (lost, _) = shares
    assert found > 0.6 and alarms < 0.2 and lost < 0.1


def test_failed_distances_are_never_members_nor_are_points_without_reference() -> None:
    made = scene(asked=40, failed=0.05)
    distance = dict(made.answers.labels.distance)
    distance["reference"] = distance["reference"].copy()
    distance["reference"][:, 7] = np.nan
    answers = replace(made.answers, labels=replace(made.answers.labels, distance=distance))
    for name in ("tmia", "tmia_distance", "tmia_smoothed"):
        found = ruling(name, answers)
        for group in JUDGED:
            gone = np.isnan(distance[group])
            gone[:, 7] = True
            np.testing.assert_array_equal(np.isnan(found.statistic[group]), gone)
            np.testing.assert_array_equal(np.isnan(found.p[group]), gone)
            assert gone[:, :7].any() and not found.decision[group][gone].any()
        decide = ATTACKS[name].decider(found.statistic["target"], found.statistic["reference"], BETA)
        np.testing.assert_array_equal(decide(np.arange(40)), found.decision["target"])


def test_smoothed_attacks_are_pmias_curve_and_the_library_agrees() -> None:
    made = scene(asked=40, failed=0.05)
    seen, found = made.answers.posteriors, usual("pmia")
    own, others = (losses(seen.posterior[group], made.label) for group in ("target", "reference"))
    verdict = Pmia(BETA).judge(own, others, np.zeros(60))
    np.testing.assert_array_equal(found.decision["target"], verdict.decision)
    np.testing.assert_allclose(found.p["target"], 1 - verdict.score, atol=1e-12)
    for name in ("pmia", "tmia_smoothed"):
        found = usual(name)
        for target, place in np.ndindex(found.statistic["target"].shape):
            loss, known = -found.statistic["target"][target, place], -found.statistic["reference"][:, place]
            knots, counts = np.unique(known[~np.isnan(known)], return_counts=True)
            p = float(PchipInterpolator(knots, counts.cumsum() / counts.sum())(np.clip(loss, knots[0], knots[-1])))
            p = max(0.0 if loss < knots[0] else p, 1 / (1 + counts.sum()))
            wanted = math.nan if math.isnan(loss) else p
            assert found.p["target"][target, place] == pytest.approx(wanted, abs=1e-9, nan_ok=True)


def test_noise_votes_agree_with_the_library() -> None:
    votes = scene(asked=40, failed=0.0).answers.labels.votes
    found = ruling("noise_votes", scene(asked=40, failed=0.0).answers)
    verdict = NoiseVotes(BETA).judge(votes["target"], votes["reference"])
    np.testing.assert_array_equal(found.decision["target"], verdict.decision)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.1, 0.25, 0.5]), st.booleans())
def test_smoothed_decisions_of_a_draw_are_those_of_its_p_values(seed: int, beta: float, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    n_ref, points = int(rng.integers(math.ceil(1 / beta) - 1, 40)), 7
    own, others = rng.normal(size=(5, points)), rng.normal(size=(n_ref, points))
    if tied:
        own, others = np.round(own, 1), np.round(others * 0.4, 1)
    own[rng.random(own.shape) < 0.1] = np.nan
    own[0, 0], own[0, 1] = np.inf, -np.inf
    others[:, 1:][rng.random((n_ref, points - 1)) < 0.2] = np.nan
    others[0] = 0.0
    decide = smoothed_decider(own, others, beta, larger_is_member=True)
    for rows in (np.arange(n_ref), rng.integers(n_ref, size=n_ref), rng.integers(n_ref, size=n_ref)):
        drawn = others[rows]
        known = ~np.isnan(drawn).all(0)
        wanted = np.zeros(own.shape, bool)
        if known.any():
            wanted[:, known] = smoothed_p(own[:, known], drawn[:, known], larger_is_member=True) <= beta
        np.testing.assert_array_equal(decide(rows), wanted)


def test_pairs_of_the_paper_take_one_target_or_all_together() -> None:
    made = synthetic_answers(4, pairs="paper")
    labels = made.answers.labels
    one = replace(labels, fit_distance=labels.fit_distance[0])
    alone, pooled = (fitted_pairs(given_labels, JudgeSettings(pairs="paper")) for given_labels in (one, labels))
    np.testing.assert_array_equal(alone.distance, pooled.distance)
    twice = fitted_pairs(
        replace(labels, fit_distance=np.concatenate([labels.fit_distance] * 2)), JudgeSettings(pairs="paper")
    )
    np.testing.assert_array_equal(twice.confidence, np.tile(alone.confidence, 2))
    assert twice.source == "paper"
    found = ruling("tmia", replace(made.answers, labels=labels), pairs="paper")
    plain = ruling("tmia_distance", made.answers)
    np.testing.assert_array_equal(found.decision["target"], plain.decision["target"])
