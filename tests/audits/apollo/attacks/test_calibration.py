"""The calibrated rule against loops, and its promise under simulated answers where membership means nothing."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from audits.apollo.attacks import ATTACKS
from audits.apollo.attacks.calibration import (
    calibrated,
    features,
    fit_logistic,
    fitted,
    leave_one_out,
    log_odds,
    log_odds_of,
    point_mean,
    side_mean,
    weighed,
)
from audits.apollo.evidence import Evidence
from audits.statistics.conformal import decided
from tests.cases.families import as_one, thinned
from tests.cases.simulations import fewer, sizes, standard_errors
from tests.cases.synthetic_evidence import auc, make_evidence, make_walks

N, K, F = 6, 9, 3


def problem(seed: int = 0, models: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    inside = np.stack([rng.permuted(np.arange(models) < models // 2) for _ in range(K)], axis=1)
    return rng.random((models, K, F)), inside


def test_features_are_the_label_at_x_and_the_shares_under_and_over() -> None:
    answers = np.array([[1, 1, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1]], dtype=bool)
    blocks = (slice(0, 1), slice(1, 4), slice(4, 7))
    np.testing.assert_allclose(features(answers, blocks), [[1, 1 / 3, 1], [0, 0, 1 / 3]], atol=1e-15)
    np.testing.assert_array_equal(features(answers, blocks[:1]), [[1.0], [0.0]])


def test_leave_one_out_means_are_the_means_over_the_other_models() -> None:
    rows, inside = problem()
    for side in (inside, ~inside):
        means = leave_one_out(rows, side)
        for i in range(N):
            for k in range(K):
                others = [rows[j, k] for j in range(N) if j != i and side[j, k]]
                np.testing.assert_allclose(means[i, k], np.mean(others, axis=0), rtol=0, atol=1e-12)


def test_point_means_are_the_means_over_all_models_of_a_side() -> None:
    rows, inside = problem()
    for side in (inside, ~inside):
        means = point_mean(rows, side)
        for k in range(K):
            np.testing.assert_allclose(means[k], rows[side[:, k], k].mean(0), rtol=0, atol=1e-12)


def test_a_side_without_models_falls_back_on_the_mean_of_the_side() -> None:
    rows, _ = problem()
    nobody = np.zeros((N, K), dtype=bool)
    np.testing.assert_array_equal(point_mean(rows, nobody), np.zeros((K, F)))
    np.testing.assert_allclose(point_mean(rows, ~nobody), rows.mean(0), atol=1e-12)
    np.testing.assert_array_equal(side_mean(rows, nobody), np.zeros(F))
    nobody[0, 0] = True  # one model of one point stands for all points of its side, and has no other beside it
    np.testing.assert_array_equal(point_mean(rows, nobody), np.broadcast_to(rows[0, 0], (K, F)))
    np.testing.assert_array_equal(leave_one_out(rows, nobody)[0, 0], rows[0, 0])


def test_own_answers_never_enter_the_own_means() -> None:
    rows, inside = problem()
    changed = rows.copy()
    changed[2, 4] += 100.0
    for side in (inside, ~inside):
        old, new = leave_one_out(rows, side), leave_one_out(changed, side)
        np.testing.assert_allclose(new[2, 4], old[2, 4], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(np.delete(new, 4, 1), np.delete(old, 4, 1))
    side = inside if inside[2, 4] else ~inside
    mates = [j for j in range(N) if j != 2]
    assert not np.allclose(leave_one_out(rows, side)[mates, 4], leave_one_out(changed, side)[mates, 4])


def test_equal_rows_give_bit_equal_scores_wherever_they_stand() -> None:
    rng = np.random.default_rng(0)
    known = rng.random((50, 9))
    weights, centre, scale = fit_logistic(known, rng.random(50) < 0.5)
    row = rng.random(9)
    block = rng.random((7, 5, 9))
    block[3, 2] = block[6, 4] = row
    scores = log_odds(block, weights, centre, scale)
    assert scores[3, 2] == scores[6, 4] == log_odds(row, weights, centre, scale)


def test_log_odds_are_the_weighted_sum_of_scaled_rows() -> None:
    rng = np.random.default_rng(1)
    rows, weights, centre, scale = rng.random((4, 3)), rng.random(4), rng.random(3), rng.random(3) + 0.5
    wanted = [sum(weights[f] * (row[f] - centre[f]) / scale[f] for f in range(3)) + weights[3] for row in rows]
    np.testing.assert_allclose(log_odds(rows, weights, centre, scale), wanted, rtol=0, atol=1e-12)


def test_the_logistic_fit_is_at_the_minimum_of_its_penalised_loss() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 3)) * [1.0, 5.0, 0.0] + [0.0, 3.0, 2.0]  # one column is constant
    labels = rng.random(200) < 1 / (1 + np.exp(-rows[:, 0]))
    weights, centre, scale = fit_logistic(rows, labels)
    scaled = (rows - centre) / scale
    residual = 1 / (1 + np.exp(-log_odds(rows, weights, centre, scale))) - labels
    np.testing.assert_allclose(scaled.T @ residual + weights[:-1], 0.0, atol=1e-3)
    assert abs(residual.sum()) < 1e-3
    assert weights[2] == 0.0 and scale[2] == 1.0


def test_points_with_equal_answers_and_equal_pseudo_targets_score_alike() -> None:
    walks = make_walks(np.random.default_rng(3), np.arange(12) < 6)
    for name in ("pseudo", "inside", "outside", "target"):
        values = getattr(walks, name)
        if name in ("inside", "outside"):
            values[..., 7] = values[..., 2]
        else:
            values[..., 7, :] = values[..., 2, :]
    score = calibrated(walks).score
    assert score[7] == score[2]


def test_a_finding_has_one_score_a_candidate_and_a_null_of_everyone_outside() -> None:
    walks = make_walks(np.random.default_rng(4), np.arange(30) < 15, models=4)
    finding = calibrated(walks)
    assert finding.score.shape == (30,)
    assert finding.null.shape == (int(walks.outside.sum()),) == (2 * 2 * 30,)


def test_the_score_is_that_by_the_means_over_all_pseudo_targets() -> None:
    """Log-odds are linear in the means, so the mean over the places leaves no reference out."""
    rows, inside = problem(2, models=8)
    asked = np.random.default_rng(5).random((K, F))
    fit = fitted(*(each[::-1] for each in (rows, inside, ~inside)))
    score, null = log_odds_of(rows, asked, inside, ~inside, fit)
    whole = np.concatenate([asked, point_mean(rows, inside), point_mean(rows, ~inside)], axis=-1)
    np.testing.assert_allclose(score.mean(0), log_odds(whole, *fit), rtol=0, atol=1e-9)
    assert score.shape == (4, K) and null.shape == (4 * K,)


def test_a_walk_is_judged_by_a_fit_that_has_met_neither_its_pseudo_targets_nor_the_target() -> None:
    walks = make_walks(np.random.default_rng(9), np.arange(20) < 10)
    rows = features(walks.pseudo, walks.blocks)
    parts = calibrated(walks).parts
    for g in range(2):
        fit = fitted(rows[1 - g], walks.inside[1 - g], walks.outside[1 - g])
        asked = features(walks.target[g], walks.blocks)
        score, null = log_odds_of(rows[g], asked, walks.inside[g], walks.outside[g], fit)
        for slot in range(2):
            np.testing.assert_array_equal(parts[2 * g + slot][0], score[slot])
            np.testing.assert_array_equal(parts[2 * g + slot][1], null)
    other = dataclasses.replace(walks, pseudo=walks.pseudo.copy())
    other.pseudo[0, :, 5] = ~other.pseudo[0, :, 5]  # a point of the first walk: every score of the second moves
    again, elsewhere = calibrated(other).parts, np.nonzero(walks.outside[0])[1] != 5
    for slot in range(2):
        np.testing.assert_array_equal(np.delete(again[slot][0], 5), np.delete(parts[slot][0], 5))
        np.testing.assert_array_equal(again[slot][1][elsewhere], parts[slot][1][elsewhere])
        assert (again[2 + slot][0] != parts[2 + slot][0]).all()


def test_a_single_query_reads_the_label_at_x_alone() -> None:
    walks = make_walks(np.random.default_rng(5), np.arange(30) < 15, directions=0)
    finding = ATTACKS["single_query"]().judge(Evidence({"point": walks}))
    assert walks.blocks == (slice(0, 1),)
    assert len(finding.parts) == 2 * 2  # two walks, each in the places of two pseudo-targets
    wanted = weighed(
        *(walks.arrays()[name].astype(float) for name in ("pseudo", "target")),
        walks.inside,
        walks.outside,
        walks.queries,
    )
    np.testing.assert_array_equal(finding.score, wanted.score)
    np.testing.assert_array_equal(finding.null, wanted.null)
    assert finding.queries.tolist() == [1] * 30


def test_scores_never_read_what_another_candidates_target_answered() -> None:
    walks = make_walks(np.random.default_rng(6), np.arange(30) < 15)
    other = dataclasses.replace(walks, target=walks.target.copy())
    other.target[:, 5] = ~other.target[:, 5]
    one, two = calibrated(walks), calibrated(other)
    np.testing.assert_array_equal(np.delete(one.score, 5), np.delete(two.score, 5))
    np.testing.assert_array_equal(one.null, two.null)
    assert one.score[5] != two.score[5]


@as_one("name", ATTACKS)
def test_four_shadows_one_pseudo_target_a_side_give_finite_scores(name: str) -> None:
    evidence, _ = make_evidence(7, candidates=20, models=2, kinds=ATTACKS[name].reads)
    finding = ATTACKS[name]().judge(evidence)
    assert np.isfinite(finding.score).all() and np.isfinite(finding.null).all()


@as_one("name", ATTACKS)
def test_answers_that_are_all_alike_give_finite_equal_scores(name: str) -> None:
    evidence, _ = make_evidence(8, candidates=20, kinds=ATTACKS[name].reads)
    for part in evidence.parts.values():
        for field, values in part.arrays().items():
            if field in ("pseudo", "target", "shadow", "original", "confidence"):
                values[...] = True if values.dtype == bool else 0.5
    finding = ATTACKS[name]().judge(evidence)
    assert np.isfinite(finding.score).all() and np.isfinite(finding.null).all()
    assert np.ptp(finding.score) < 1e-9
    assert abs(decided(finding.null[:1], finding.null[1:], 0.05)[0] - 0.05) < 1e-12


RATE, CANDIDATES = 0.05, 100
RUNS = {"u_mia_shadow": 25}  # ten support vector machines a run
SIZES = sizes(0.2)


def runs_of(name: str, size: float) -> int:
    return fewer(RUNS.get(name, 40), size)


@functools.cache
def simulate(name: str, effect: float, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return found FPR at the promised ``RATE`` and AUC of independent audits, each with its points and shadows."""
    fpr, area = [], []
    for run in range(runs):
        evidence, forgotten = make_evidence(1000 + run, CANDIDATES, models=8, effect=effect, kinds=ATTACKS[name].reads)
        finding = ATTACKS[name]().judge(evidence)
        fpr.append(finding.decide(RATE)[~forgotten].mean())
        area.append(auc(finding.score, forgotten))
    return np.array(fpr), np.array(area)


def standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


# The oracle's threshold is read off the judged points.
SHORT = ("apollo", "apollo_offline", "lira", "u_lira")
SIMULATED = thinned(sorted(set(ATTACKS) - {"u_mia_oracle"}), SHORT)
OVER_UNLEARNED = {"apollo_over"}  # finds points that a model knows less of than models that never saw them


@SIZES
@pytest.mark.parametrize("name", thinned(ATTACKS, SHORT))
def test_without_an_effect_the_auc_is_one_half(name: str, size: float) -> None:
    _, area = simulate(name, 0.0, runs_of(name, size))
    assert abs(area.mean() - 0.5) < standard_errors(len(area), size) * standard_error(area)
    assert standard_error(area) < 0.015 / np.sqrt(size)


@SIZES
@pytest.mark.parametrize("name", thinned(ATTACKS, SHORT))
def test_with_an_effect_the_auc_is_above_one_half(name: str, size: float) -> None:
    _, area = simulate(name, -1.5 if name in OVER_UNLEARNED else 1.5, fewer(RUNS.get(name, 40) * 3 // 8, size))
    assert area.mean() > 0.53 + (3.5 if size == 1 else 2) * standard_error(area)


@SIZES
@pytest.mark.parametrize("name", SIMULATED)
def test_without_an_effect_the_promised_false_positive_rate_is_found(name: str, size: float) -> None:
    found, _ = simulate(name, 0.0, runs_of(name, size))
    assert abs(found.mean() - RATE) < standard_errors(len(found), size) * standard_error(found)
