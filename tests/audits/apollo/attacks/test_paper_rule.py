"""Apollo's own rule and its heat map against their definitions, and how optimistic its best threshold is."""

from __future__ import annotations

import numpy as np

from audits.apollo.attacks import ATTACKS
from audits.apollo.attacks.apollo_paper import THRESHOLDS, best_threshold, decisions, said
from audits.apollo.attacks.heat import heat_map
from tests.cases.synthetic_evidence import evidence_for, make_walks


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


def test_the_score_of_the_paper_is_the_share_of_rules_and_walks_that_say_forgotten() -> None:
    evidence = evidence_for("apollo_paper", 5, candidates=8)
    walks = evidence.walk("apollo")
    finding = ATTACKS["apollo_paper"]().judge(evidence)
    steps = walks.radius.shape[-1]
    for k in range(8):
        votes = [
            slow_decision(
                walks.target[g, k, 1 + way * steps : 1 + (way + 1) * steps], walks.confidence[g, k, way], name, tau
            )
            for g in range(2)
            for way, name in enumerate(("under", "over"))
            for tau in THRESHOLDS
        ]
        assert abs(finding.score[k] - np.mean(votes)) < 1e-12


def test_the_best_threshold_is_optimistic_when_membership_means_nothing() -> None:
    rng = np.random.default_rng(1)
    forgotten = np.arange(200) < 100
    found = [
        best_threshold(said(make_walks(rng, forgotten, effect=0.0, steps=5)), rng.permuted(forgotten))
        for _ in range(40)
    ]
    assert 0.52 < np.mean(found) < 0.57
    assert min(found) > 0.5


def test_the_best_threshold_is_the_best_over_both_rules() -> None:
    forgotten = np.array([True, True, False, False])
    says = np.zeros((2, 3, 4))
    says[1, 2] = [1, 0.5, 0, 0.5]
    assert best_threshold(says, forgotten) == 0.75
    assert best_threshold(np.zeros((2, 3, 4)), forgotten) == 0.5


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
