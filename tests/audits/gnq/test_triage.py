"""What a ranking predicts: gaps and vulnerability from shadows, rank correlations, and the attack's AUC by bins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from audits.data.twins import draw_twins
from audits.errors import BadInput
from audits.gnq.kept import kept_points
from audits.gnq.triage import bin_aucs, bins_of, loss_gap, vulnerability
from audits.statistics.rank_correlation import spearman
from tests.cases.families import as_one

T, F = True, False
HALF = np.array([[T, T, T, T, F, F, F, F], [F, F, F, F, T, T, T, T]])
nan = np.nan


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def halves(pairs: int, points: int, seed: int) -> np.ndarray:
    return np.concatenate([draw_twins(points, seed, pair).half for pair in range(pairs)])


def test_outcomes_are_those_worked_out_point_by_point() -> None:
    half, labels = halves(3, 10, 1), np.arange(10) % 3
    logits = drawn(6, 10, 3)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    own = np.array([[p[m, j, labels[j]] for j in range(10)] for m in range(6)])
    loss, phi = -np.log(own), np.log(own / (1 - own))
    gap = [np.mean(loss[~half[:, j], j]) - np.mean(loss[half[:, j], j]) for j in range(10)]
    np.testing.assert_allclose(loss_gap(logits, half, labels), gap, rtol=1e-9)
    variances = []
    for side in (half, ~half):
        held = [phi[side[:, j], j] for j in range(10)]
        variances.append(sum(((v - v.mean()) ** 2).sum() for v in held) / sum(len(v) - 1 for v in held))
    apart = np.array([phi[half[:, j], j].mean() - phi[~half[:, j], j].mean() for j in range(10)])
    np.testing.assert_allclose(vulnerability(logits, half, labels), apart / np.sqrt(np.mean(variances)), rtol=1e-9)


def test_a_memorised_point_is_vulnerable() -> None:
    half, labels = halves(8, 40, 2), np.zeros(40, int)
    logits = 0.3 * drawn(16, 40, 3)
    logits[:, 5, 0] += 6.0 * half[:, 5]
    for outcome in (loss_gap, vulnerability):
        found = outcome(logits, half, labels)
        assert found.argmax() == 5
        assert found[5] > 2 * np.delete(found, 5).max()


def test_rank_correlation_is_over_each_targets_own_points_with_ties() -> None:
    half = halves(2, 30, 3)
    score, outcome = np.round(2 * drawn(4, 30)), np.round(2 * drawn(30, seed=1))
    slow = [spearmanr(score[t][half[t]], outcome[half[t]]).statistic for t in range(4)]
    np.testing.assert_allclose(spearman(score, outcome, half), slow, rtol=1e-12)
    np.testing.assert_allclose(spearman(np.where(half, score, nan), outcome), slow, rtol=1e-12)
    np.testing.assert_allclose(spearman(np.where(half, score, nan), np.where(half, outcome, nan), half), slow)
    np.testing.assert_allclose(spearman(score, np.exp(score), half), 1.0)
    np.testing.assert_allclose(spearman(score, -score, half), -1.0)
    assert np.isnan(spearman(np.ones(30), outcome, half)).all()


def test_bins_are_quantiles_of_own_points_and_ties_go_by_their_place() -> None:
    score = np.array([[5, 1, 3, 2, 9, 9, 9, 9], [9, 9, 9, 9, 7, 7, 7, 7]], float)
    np.testing.assert_array_equal(
        bins_of(np.where(HALF, score, nan), HALF, 2), [[1, 0, 1, 0, -1, -1, -1, -1], [-1, -1, -1, -1, 1, 1, 0, 0]]
    )
    np.testing.assert_array_equal(bins_of(score, HALF, 3)[0, :4], [2, 0, 1, 0])
    half = halves(1, 40, 4)
    score = np.round(drawn(2, 40))
    np.testing.assert_array_equal(bins_of(score, half, 5) == 4, half & ~kept_points(half, score, 0.2))


def slow_auc(members: list[float], others: list[float]) -> float:
    return float(np.mean([(a > b) + 0.5 * (a == b) for a in members for b in others]))


@pytest.mark.parametrize("rule", ["same", "all"])
def test_bins_are_told_apart_by_their_rule(rule: str) -> None:
    half = halves(2, 26, 5)
    score, attack = np.where(half, drawn(4, 26), nan), np.round(2 * drawn(4, 26, seed=1))
    found = bin_aucs(score, attack, half, 3, rule)
    assert found.shape == (4, 3)
    for target in range(4):
        own, twin = ([j for j in np.argsort(score[t]) if half[t, j]] for t in (target, target ^ 1))
        for number, (members, same) in enumerate(zip(np.array_split(own, 3), np.array_split(twin, 3), strict=True)):
            others = same if rule == "same" else twin
            np.testing.assert_allclose(found[target, number], slow_auc(attack[target][members], attack[target][others]))


def test_the_rule_same_is_not_fooled_by_points_that_are_hard() -> None:
    half = halves(1, 400, 6)
    difficulty = drawn(400)
    attack = -difficulty + 0.01 * drawn(2, 400, seed=1)  # hard points score low, members or not
    same, everyone = (bin_aucs(difficulty, attack, half, 4, rule) for rule in ("same", "all"))
    np.testing.assert_allclose(same.mean(0), 0.5, atol=0.01)  # a bin ends elsewhere in the other half, in each alike
    assert (everyone[:, 0] > 0.8).all() and (everyone[:, -1] < 0.2).all()


LOGITS, LABELS = drawn(2, 8, 3), np.zeros(8, int)


@as_one(
    "ask, message",
    [
        (lambda: loss_gap(LOGITS[:, :5], HALF, LABELS), r"logits have shape \(2, 5, 3\)"),
        (lambda: loss_gap(LOGITS, HALF, LABELS[:3]), r"labels \(3,\)"),
        (lambda: loss_gap(np.full((2, 8, 3), nan), HALF, LABELS), "logits are not all finite"),
        (lambda: loss_gap(LOGITS, HALF[[0, 0]], LABELS), "8 points are in all of the models or in none"),
        (lambda: vulnerability(LOGITS, HALF, LABELS), "2 models leave no point with two on a side"),
        (lambda: spearman(np.where(HALF, nan, 1.0), np.ones(8), HALF), "score is not a number for 8 points"),
        (lambda: spearman(np.ones((2, 8)), np.full(8, nan)), "outcome is not a number for 16 points"),
        (lambda: spearman(np.ones(7), np.ones(8), HALF), r"score has shape \(7,\)"),
        (lambda: bins_of(np.ones(8), HALF, 5), "bins is 5; allowed: 1 to 4"),
        (lambda: bins_of(np.ones(8), HALF, 0), "bins is 0"),
        (lambda: bin_aucs(np.ones(8), np.ones((2, 8)), HALF, 2, "sam"), "did you mean 'same'"),
        (lambda: bin_aucs(np.ones(8), np.full((2, 8), nan), HALF, 2, "all"), "attack is not a number"),
        (lambda: bin_aucs(np.ones(8), np.ones((2, 8)), HALF[[0, 0]], 2, "all"), "must be twins"),
    ],
)
def test_what_does_not_fit_is_refused(ask, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        ask()
    assert "\n" not in str(caught.value)
