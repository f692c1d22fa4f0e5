"""The paper's rules and its heat map against their definitions, and how optimistic their best threshold is."""

from __future__ import annotations

import numpy as np
import pytest

from audits.apollo.attacks import ATTACKS
from audits.apollo.attacks.heat import heat_map
from audits.apollo.attacks.paper_rule import THRESHOLDS, balanced_accuracies, decisions, said
from tests.cases.synthetic_evidence import auc, evidence_for, make_evidence, make_walks


def slow_decision(answers: np.ndarray, confidence: np.ndarray, way: str, tau: float) -> bool:
    """Return "forgotten" of one point by the definition; ``answers``: does the label at each step equal y?"""
    chosen = len(confidence) - 1
    for t, value in enumerate(confidence):
        if (value < tau) if way == "under" else (value > tau):
            chosen = t
            break
    return bool(answers[chosen]) if way == "under" else not answers[chosen]


def test_decisions_of_the_paper_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    points, steps = 25, 4
    answers = rng.random((points, 1 + 2 * steps)) < 0.5
    confidence = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], (points, 2, steps))
    thresholds = np.array([0.0, 0.3, 0.31, 0.5, 0.9, 1.0])  # some equal to a confidence: neither below nor above
    found = decisions(answers, confidence, thresholds)
    assert found.shape == (2, 6, points)
    for way, name in enumerate(("under", "over")):
        for j, tau in enumerate(thresholds):
            for k in range(points):
                own = answers[k, 1 + way * steps : 1 + (way + 1) * steps]
                assert found[way, j, k] == slow_decision(own, confidence[k, way], name, tau)


@pytest.mark.parametrize(("name", "way", "rule"), [("apollo_under", 0, "under"), ("apollo_over", 1, "over")])
def test_a_rule_scores_by_the_share_of_thresholds_and_walks_that_say_forgotten(name: str, way: int, rule: str) -> None:
    evidence = evidence_for(name, 5, candidates=8)
    walks = evidence.walk("apollo")
    finding = ATTACKS[name]().judge(evidence)
    steps = walks.radius.shape[-1]
    own = slice(1 + way * steps, 1 + (way + 1) * steps)

    def votes(answers: np.ndarray, g: int, k: int) -> float:
        mean = walks.confidence[g, k, way]
        return float(np.mean([slow_decision(answers[own], mean, rule, tau) for tau in THRESHOLDS]))

    for k in range(8):
        assert abs(finding.score[k] - np.mean([votes(walks.target[g, k], g, k) for g in range(2)])) < 1e-12
    wanted = [
        votes(walks.pseudo[g, i, k], g, k)
        for g in range(2)
        for i in range(4)
        for k in range(8)
        if walks.outside[g, i, k]
    ]
    np.testing.assert_allclose(finding.null, wanted, rtol=0, atol=1e-12)


def test_the_two_rules_point_opposite_ways_where_points_are_still_remembered() -> None:
    evidence, forgotten = make_evidence(3, 200, models=8, effect=1.5, kinds=["apollo"])
    under, over = (auc(ATTACKS[name]().judge(evidence).score, forgotten) for name in ("apollo_under", "apollo_over"))
    assert under > 0.6 and over < 0.4


@pytest.mark.long
@pytest.mark.parametrize("way", [0, 1])
def test_the_best_threshold_is_optimistic_when_membership_means_nothing(way: int) -> None:
    rng = np.random.default_rng(1)
    forgotten = np.arange(200) < 100
    found = [
        balanced_accuracies(said(make_walks(rng, forgotten, effect=0.0, steps=5))[way], rng.permuted(forgotten)).max()
        for _ in range(40)
    ]
    assert 0.51 < np.mean(found) < 0.57


def test_balanced_accuracy_is_the_mean_of_both_rates_at_every_threshold() -> None:
    forgotten = np.array([True, True, False, False])
    says = np.zeros((3, 4))
    says[2] = [1, 0.5, 0, 0.5]
    says[1] = [0, 0, 1, 1]
    assert balanced_accuracies(says, forgotten).tolist() == [0.5, 0.0, 0.75]


def test_the_heat_map_counts_by_the_definition() -> None:
    forgotten, unseen = np.arange(14) < 5, np.arange(14) > 7
    walks = make_walks(np.random.default_rng(6), forgotten, steps=3)
    found = heat_map(walks, forgotten, unseen)
    for a in range(3):
        for b in range(3):
            for name, group in (("forget", forgotten), ("unseen", unseen)):
                counts = [
                    sum(bool(walks.target[g, k, 1 + a]) or not walks.target[g, k, 4 + b] for k in np.flatnonzero(group))
                    for g in range(2)
                ]
                assert found[f"heat.{name}"][a, b] == np.mean(counts)
    for way, name in enumerate(("under", "over")):
        for t in range(3):
            wanted = np.mean([walks.radius[g, k, way, t] for g in range(2) for k in range(14)])
            assert abs(found[f"heat.{name}_radius"][t] - wanted) < 1e-12
