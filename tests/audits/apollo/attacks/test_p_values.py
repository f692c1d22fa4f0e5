"""p-values of findings: valid whatever parts have in common, conservative at ties, and no weaker than other rules."""

import numpy as np
import pytest

from audits.apollo.attacks.base import Finding
from audits.statistics.conformal import p_values

LEVELS = (0.01, 0.05, 0.1)
POINTS, NULLS = 200, 400


def one(score, null):
    return Finding(score, null, np.ones(score.size, np.int32)).p_values()


def two_walks(rng, correlation, shift):
    """Return a finding of two parts whose scores share ``correlation``, each with a null of its own."""
    shared, own = rng.normal(size=POINTS), rng.normal(size=(2, POINTS))
    scores = shift + np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    parts = tuple((score, rng.normal(size=NULLS)) for score in scores)
    null = np.concatenate([part for _, part in parts])
    return Finding(scores.mean(0), null, np.ones(POINTS, np.int32), parts)


def test_p_value_counts_nulls_at_least_as_high():
    rng = np.random.default_rng(0)
    score, null = rng.integers(0, 6, 50).astype(float), rng.integers(0, 6, 80).astype(float)
    slow = [(1 + sum(other >= value for other in null)) / (1 + len(null)) for value in score]
    np.testing.assert_allclose(p_values(score, null), slow, rtol=0, atol=1e-15)
    assert one(np.array([9.0]), null)[0] == 1 / 81


@pytest.mark.parametrize("correlation", [None, 0.0, 0.5, 0.9, 1.0])
def test_p_values_are_valid_under_the_null(correlation):
    rng = np.random.default_rng(1)
    found = np.concatenate(
        [
            one(rng.normal(size=POINTS), rng.normal(size=NULLS))
            if correlation is None
            else two_walks(rng, correlation, 0.0).p_values()
            for _ in range(300)
        ]
    )
    rates = [(found <= level).mean() for level in LEVELS]
    np.testing.assert_allclose(rates, LEVELS, rtol=0.08, atol=0.001)  # valid, and not needlessly conservative


def test_ties_cost_power_but_not_validity():
    rng = np.random.default_rng(2)
    found = np.concatenate(
        [one(rng.integers(0, 8, POINTS).astype(float), rng.integers(0, 8, NULLS).astype(float)) for _ in range(200)]
    )
    assert all((found <= level).mean() <= level + 0.002 for level in LEVELS)
    binary = one(np.array([0.0, 1.0]), np.array([0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(binary, [1.0, 0.5])


def merged(finding):
    """Return p-values by the rules that hold under any dependence, and by ours."""
    first, second = (p_values(score, null) for score, null in finding.parts)
    return {
        "twice the average": first + second,
        "twice the minimum": 2 * np.minimum(first, second),
        "one part": finding.p_values(),
    }


@pytest.mark.parametrize("correlation", [0.5, 0.9])
def test_one_part_finds_at_least_what_rules_for_any_dependence_find(correlation):
    rng = np.random.default_rng(3)
    found = [merged(two_walks(rng, correlation, 0.75)) for _ in range(300)]  # AUC .70
    power = {rule: np.mean([each[rule] <= 0.05 for each in found]) for rule in found[0]}
    assert power["one part"] > 1.5 * power["twice the average"]
    assert power["one part"] > power["twice the minimum"] - 0.02
    if correlation == 0.9:  # what Apollo's two walks share
        assert power["one part"] > power["twice the minimum"] + 0.02


def test_p_values_agree_with_the_threshold_of_the_same_rate():
    rng = np.random.default_rng(4)
    finding = two_walks(rng, 0.5, 1.0)
    for rate in LEVELS:
        for place, (score, null) in enumerate(finding.parts):
            own = np.arange(POINTS) % 2 == place
            said = Finding(score, null, finding.queries).decide(rate)[own] > 0
            assert not (finding.p_values()[own] <= rate)[~said].any()


def test_the_least_p_value_is_one_over_nulls_plus_one():
    rng = np.random.default_rng(5)
    finding = two_walks(rng, 0.5, 1.0)
    raised = tuple((score + 100.0, null) for score, null in finding.parts)
    least = Finding(finding.score, finding.null, finding.queries, raised).p_values()
    np.testing.assert_array_equal(least, np.full(POINTS, 1 / (1 + NULLS)))
