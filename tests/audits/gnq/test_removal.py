"""Removal of the most exposed points in twins: who keeps what, who is told apart from whom, and what shows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from audits.data.twins import draw_twins
from audits.errors import BadInput
from audits.gnq.answers import PoolAnswers, compared
from audits.gnq.attacks.lira import drop_rates, mixture_ratio
from audits.gnq.kept import kept_points
from audits.gnq.onion import exposure, onion
from audits.gnq.removal import GROUPS, aucs, group_aucs, two_sided_auc
from audits.signals.confidence import scaled
from audits.statistics.roc import auc
from tests.cases.families import as_one

T, F = True, False
HALF = np.array([[T, T, T, F, F, F], [F, F, F, T, T, T]])
SCORES = np.array([[5.0, 9.0, 1.0, 0.0, 0.0, 0.0], [99.0, 99.0, 99.0, 2.0, 1.0, 3.0]])


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def many_twins(pairs: int, points: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return half and kept (2·pairs, points) under random scores."""
    half = np.concatenate([draw_twins(points, seed, "shadow", pair).half for pair in range(pairs)])
    return half, kept_points(half, drawn(*half.shape, seed=seed), share)


def test_twins_share_out_the_pool_by_their_seed() -> None:
    twins = draw_twins(10, 3, "target")
    assert (twins.half.sum(1) == 5).all()
    assert (twins.half[0] != twins.half[1]).all()
    again, other = draw_twins(10, 3, "target"), draw_twins(10, 3, "shadow")
    np.testing.assert_array_equal(twins.half, again.half)
    assert twins.seeds == again.seeds
    assert (twins.half != other.half).any()
    every = [*twins.seeds, *twins.retraining_seeds, *other.seeds, *other.retraining_seeds]
    assert len(set(every)) == 8


def test_each_twin_drops_its_own_top() -> None:
    kept = kept_points(HALF, SCORES, 1 / 3)
    np.testing.assert_array_equal(kept, [[T, F, T, F, F, F], [F, F, F, T, T, F]])
    np.testing.assert_array_equal(kept_points(HALF, SCORES, 0.0), HALF)
    np.testing.assert_array_equal(kept_points(HALF, np.zeros((2, 6)), 1 / 3)[0], [F, T, T, F, F, F])


@as_one("share", [0.0, 0.1, 0.2, 0.25, 0.5, 0.9])
def test_exactly_the_rounded_share_is_removed_and_never_a_strangers_point(share: float) -> None:
    half, kept = many_twins(3, 34, share, seed=1)
    assert (kept.sum(1) == 17 - round(share * 17)).all()
    assert not (kept & ~half).any()


def test_twins_share_the_rule() -> None:
    kept = kept_points(HALF, SCORES, 1 / 3)
    np.testing.assert_array_equal(kept_points(HALF[::-1], SCORES[::-1], 1 / 3), kept[::-1])
    members, others = compared(HALF, kept, "kept")
    np.testing.assert_array_equal(members, kept)
    np.testing.assert_array_equal(others, kept[::-1])


@as_one(
    "group, members, others",
    [
        ("contributors", [0, 1, 2], [3, 4, 5]),
        ("kept", [0, 2], [3, 4]),
        ("kept_unfiltered", [0, 2], [3, 4, 5]),
        ("removed", [1], [5]),
        ("removed_unfiltered", [1], [3, 4, 5]),
    ],
)
def test_groups_are_told_apart(group: str, members: list[int], others: list[int]) -> None:
    inside, outside = compared(HALF, kept_points(HALF, SCORES, 1 / 3), group)
    assert np.flatnonzero(inside[0]).tolist() == members
    assert np.flatnonzero(outside[0]).tolist() == others


def rates_slowly(dropped: list[int], held: list[int]) -> list[float]:
    """Return beta-binomial means of each point's rate, the correlation by moments."""
    p = sum(dropped) / sum(held)
    spread = sum((k - n * p) ** 2 for k, n in zip(dropped, held, strict=True)) / (p * (1 - p))
    alike = min(max((spread - sum(held)) / sum(n * (n - 1) for n in held), 0.0), 0.99)
    if not alike:
        return [p] * len(held)
    weight = 1 / alike - 1  # a + b of the beta
    return [(k + p * weight) / (n + weight) for k, n in zip(dropped, held, strict=True)]


def lira_slowly(target: np.ndarray, shadows: PoolAnswers, labels: np.ndarray, group: str) -> np.ndarray:
    """Return log-likelihood ratios (N,) with variances pooled over points, one point after another."""
    inside, outside = compared(shadows.half, shadows.kept, group)
    logits = shadows.logits
    gone = inside & ~shadows.kept if group == "contributors" else np.zeros_like(inside)
    inside = inside & ~gone
    phi = np.array(
        [[z[y] - np.log(np.exp(np.delete(z, y)).sum()) for z, y in zip(row, labels, strict=True)] for row in logits]
    )
    own = np.array([z[y] - np.log(np.exp(np.delete(z, y)).sum()) for z, y in zip(target, labels, strict=True)])
    density = []
    for side in (inside, outside):
        held = [phi[side[:, j], j] for j in range(len(labels))]
        variance = sum(((v - v.mean()) ** 2).sum() for v in held) / sum(len(v) - 1 for v in held)
        density.append(np.array([-((own[j] - v.mean()) ** 2) / (2 * variance) for j, v in enumerate(held)]))
        density[-1] -= np.log(variance) / 2
    if not gone.any():
        return density[0] - density[1]
    share = np.array(rates_slowly(gone.sum(0).tolist(), shadows.half.sum(0).tolist()))
    return np.log((1 - share) * np.exp(density[0] - density[1]) + share)


def pool(pairs: int, share: float, seed: int, gap: float = 0.0, points: int = 12) -> PoolAnswers:
    """Return answers of random models that raise the logit of class 0, everybody's, by ``gap`` where they kept it."""
    half, kept = many_twins(pairs, points, share, seed)
    logits = drawn(2 * pairs, points, 3, seed=seed + 100)
    logits[..., 0] += gap * kept
    return PoolAnswers(logits, half, kept)


def test_attacks_are_those_worked_out_slowly() -> None:
    labels = np.arange(12) % 3
    targets, naive, adaptive = pool(1, 0.34, 1), pool(20, 0.0, 2), pool(20, 0.34, 3)
    found = {(row.group, row.attack, row.shadows): row for row in group_aucs(targets, labels, naive, adaptive)}
    filtered = ("contributors", "kept", "removed")
    attacks = [(group, *attack) for group in GROUPS for attack in (("loss", "none"), ("lira", "naive"))]
    assert set(found) == {*attacks, *((group, "lira", "adaptive") for group in filtered)}
    for group in GROUPS:
        members, others = compared(targets.half, targets.kept, group)
        for twin in range(2):
            judged = members[twin] | others[twin]
            for kind, shadows, sides in (("naive", naive, "contributors"), ("adaptive", adaptive, group)):
                if (group, "lira", kind) not in found:
                    continue
                score = lira_slowly(targets.logits[twin], shadows, labels, sides)
                row = found[group, "lira", kind]
                np.testing.assert_allclose(row.scores[twin], score, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(row.auc[twin], auc(score[judged], members[twin][judged]))
            exponents = np.exp(targets.logits[twin])
            probability = exponents[np.arange(12), labels] / exponents.sum(1)
            row = found[group, "loss", "none"]
            np.testing.assert_allclose(row.scores[twin], np.log(probability), rtol=1e-9)
            np.testing.assert_allclose(row.auc[twin], auc(probability[judged], members[twin][judged]))


def test_a_trace_in_the_kept_points_shows_and_its_absence_does_not() -> None:
    labels = np.zeros(400, np.int64)
    adaptive = pool(8, 0.2, 5, gap=2.0, points=400)
    with_trace, without = pool(1, 0.2, 6, gap=2.0, points=400), pool(1, 0.2, 7, points=400)
    found = {row.group: row for row in group_aucs(with_trace, labels, None, adaptive) if row.shadows == "adaptive"}
    assert (found["kept"].auc > 0.8).all()
    assert (found["contributors"].auc < found["kept"].auc - 0.03).all()  # removed contributors leave no trace here
    for row in group_aucs(without, labels, None, adaptive, ["contributors", "kept"]):
        np.testing.assert_allclose(row.auc, 0.5, atol=0.1)


def test_contributors_are_found_at_least_as_well_by_shadows_that_know_the_rule() -> None:
    """Removal at random, dropped points leave no trace: to know that some are dropped cannot be a disadvantage."""
    labels = np.zeros(2000, np.int64)
    naive, adaptive = pool(24, 0.0, 11, gap=3.0, points=2000), pool(24, 0.4, 12, gap=3.0, points=2000)
    target = pool(4, 0.4, 13, gap=3.0, points=2000)
    rows = group_aucs(target, labels, naive, adaptive, ["contributors"], ["lira"])
    found = {row.shadows: row.auc.mean() for row in rows}
    assert found["adaptive"] > found["naive"] - 0.001  # one Gaussian over both finds .003 less than naive shadows
    nobody = pool(1, 0.4, 14, points=2000)
    (row,) = group_aucs(nobody, labels, None, adaptive, ["contributors"], ["lira"])
    np.testing.assert_allclose(row.auc, 0.5, atol=0.04)


def test_a_rule_that_drops_the_same_points_again_and_again_is_known_to_shadows_that_follow_it() -> None:
    labels, always = np.zeros(2000, np.int64), np.arange(2000) % 5 < 2

    def follow(answers: PoolAnswers, gap: float) -> PoolAnswers:
        logits = answers.logits.copy()
        logits[..., 0] += gap * (answers.half & ~always)
        return PoolAnswers(logits, answers.half, answers.half & ~always)

    naive, adaptive, target = pool(24, 0.0, 21, gap=3.0, points=2000), *(pool(n, 0.0, n, points=2000) for n in (24, 4))
    rows = group_aucs(follow(target, 3.0), labels, naive, follow(adaptive, 3.0), ["contributors"], ["lira"])
    found = {row.shadows: row.auc.mean() for row in rows}
    # nobody can tell dropped points from outsiders: AUC is at most that of the kept, and ½ for the other two fifths
    assert found["adaptive"] > found["naive"] + 0.01
    rates = drop_rates(np.array([20, 0, 20, 0]), np.full(4, 20))
    np.testing.assert_allclose(rates, [1, 0, 1, 0], atol=0.01)
    np.testing.assert_allclose(drop_rates(np.array([5, 4, 6, 5]), np.full(4, 10)), 0.5)


def test_a_point_that_no_shadow_kept_or_none_has_outside_takes_the_mean_gap() -> None:
    seen = np.array([[3.0, 0.0, 2.0], [1.0, 0.5, 4.0], [2.0, 1.0, 1.0], [0.0, 2.5, 2.0]])
    half = np.array([[1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 1]], bool)
    kept, outside = half.copy(), ~half
    kept[:, 1] = False
    found = mixture_ratio(np.full((1, 3), 1.5), seen, half, kept, outside)
    means = np.array([[2.5, 1.5 + 2.0, 2.25], [0.5, 1.5, 2.25 - 2.0]])  # the gap of the first point is 2
    inside = ((3 - 2.5) ** 2 + (2 - 2.5) ** 2 + 0.25**2 + 1.75**2 + 1.25**2 + 0.25**2) / (1 + 3)
    out = ((1 - 0.5) ** 2 + (0 - 0.5) ** 2 + 1 + 1) / 2
    ratio = [-((1.5 - m) ** 2) / (2 * v) - np.log(v) / 2 for m, v in zip(means, (inside, out), strict=True)]
    dropped = np.array(rates_slowly([0, 2, 0], [2, 2, 4]))
    np.testing.assert_allclose(found[0], np.log((1 - dropped) * np.exp(ratio[0] - ratio[1]) + dropped), rtol=1e-12)


def test_nobody_removed_is_nothing_to_tell_apart() -> None:
    targets = pool(1, 0.0, 1)
    removed, contributors = group_aucs(targets, np.zeros(12, np.int64), groups=["removed", "contributors"])
    assert np.isnan(removed.auc).all()
    assert np.isfinite(contributors.auc).all()
    assert np.isnan(aucs(np.zeros((2, 6)), HALF, np.zeros((2, 6), bool))).all()


def test_the_side_is_read_off_the_other_seeds() -> None:
    found = two_sided_auc([[0.3, 0.2], [0.4, 0.7], [0.1, 0.3]])
    # others of the first: mean .375, turned; of the second: .225, turned; of the third: .4, turned
    np.testing.assert_allclose(found, [[0.7, 0.8], [0.6, 0.3], [0.9, 0.7]])
    np.testing.assert_allclose(two_sided_auc([[0.1, 0.1], [0.9, 0.9]]), [[0.1, 0.1], [0.1, 0.1]])
    chance = 0.5 + 0.05 * drawn(2000, 2, 2)
    mean = np.mean([two_sided_auc(each) for each in chance])
    np.testing.assert_allclose(mean, 0.5, atol=0.002)


def exposed_slowly(phi: np.ndarray, inside: np.ndarray, outside: np.ndarray, models: int) -> np.ndarray:
    found = []
    for j in range(phi.shape[1]):
        held, others = phi[inside[:, j], j], phi[outside[:, j], j]
        hits = [min(a) > max(b) for a in combinations(held, models) for b in combinations(others, models)]
        found.append(np.mean(hits) if hits else np.nan)
    return np.array(found)


@pytest.mark.parametrize("models", [1, 2, 3])
def test_exposure_is_the_mean_over_all_choices_of_models(models: int) -> None:
    half, kept = many_twins(4, 20, 0.3, seed=2)
    phi = np.round(2 * (drawn(8, 20) + 1.5 * kept))  # with ties
    slow = exposed_slowly(phi, kept, ~half, models)
    assert models < 3 or np.isnan(slow).any()
    np.testing.assert_allclose(exposure(phi, kept, ~half, models), slow, rtol=1e-12)


def test_the_floor_is_what_chance_alone_exposes() -> None:
    half = many_twins(8, 3000, 0.0, seed=3)[0]
    found = exposure(drawn(16, 3000), half, ~half, 4)
    np.testing.assert_allclose(found.mean(), 1 / 70, atol=0.004)


def test_onion_counts_the_kept_points_before_and_after() -> None:
    labels = np.zeros(600, np.int64)
    kept = pool(1, 0.2, 9, points=600).kept.any(0)
    before, after = pool(8, 0.0, 10, gap=1.0, points=600), pool(8, 0.2, 11, gap=2.0, points=600)
    found = onion(before, after, labels, kept)
    assert found.floor == pytest.approx(1 / 70)
    assert found.points + found.left_out == kept.sum() == 480
    assert 0 < found.left_out < 60  # kept by three of eight shadows or fewer
    both = [exposure(scaled(seen.logits, labels), seen.kept, ~seen.half) for seen in (before, after)]
    judged = kept & np.isfinite(both[1])
    np.testing.assert_allclose([found.before, found.after], [each[judged].mean() for each in both], rtol=1e-12)
    assert found.after > 2 * found.before > 2 * found.floor
    np.testing.assert_array_equal(np.isfinite(found.each), np.stack([judged, judged]))
    same = onion(before, pool(8, 0.2, 12, gap=1.0, points=600), labels, kept)
    assert abs(same.after - same.before) < 0.02  # fewer models that hold a point do not expose it


def test_too_few_models_leave_nothing_to_judge() -> None:
    shadows = pool(2, 0.2, 1)
    found = onion(shadows, shadows, np.zeros(12, np.int64), np.ones(12, bool))
    assert (found.points, found.left_out) == (0, 12)
    assert np.isnan([found.before, found.after]).all()


@as_one(
    "ask, message",
    [
        (lambda: draw_twins(7, 0), "points is 7; allowed: an even number"),
        (lambda: kept_points(HALF, SCORES, 1.0), "share is 1.0"),
        (lambda: kept_points(HALF, SCORES, 0.9), "removes all 3 points of model 0"),
        (lambda: kept_points(HALF, SCORES[:1], 0.1), r"scores \(1, 6\)"),
        (lambda: kept_points(HALF, np.where(HALF, np.nan, 0), 0.1), "are not numbers"),
        (lambda: compared(HALF, HALF, "keep"), "did you mean 'kept'"),
        (lambda: compared(HALF[:1], HALF[:1], "kept"), "twins in turn"),
        (lambda: PoolAnswers(drawn(2, 5, 3), HALF, HALF), r"logits have shape \(2, 5, 3\)"),
        (lambda: PoolAnswers(drawn(2, 6, 3), HALF[[0, 0]], HALF[[0, 0]]), "must be twins"),
        (lambda: PoolAnswers(drawn(2, 6, 3), HALF, ~HALF), "not in the model's half"),
        (lambda: PoolAnswers(drawn(2, 6, 3), HALF, HALF, drawn(2, 5, 4)), r"features have shape \(2, 5, 4\)"),
        (lambda: PoolAnswers(drawn(2, 6, 3), HALF, HALF, np.full((2, 6, 1), np.inf)), "features are not all finite"),
        (lambda: group_aucs(pool(1, 0, 0), np.zeros(12, int), pool(1, 0, 0, points=14)), "naive shadows have logits"),
        (lambda: group_aucs(pool(1, 0, 0), np.zeros(12, int), attacks=["los"]), "did you mean 'loss'"),
        (lambda: two_sided_auc([[0.4, 0.6]]), "two seeds or more"),
        (lambda: exposure(drawn(2, 6), HALF, HALF), "share nothing"),
        (lambda: exposure(drawn(2, 6), HALF, ~HALF, 0), "models is 0"),
        (lambda: onion(pool(1, 0, 0), pool(1, 0, 0), np.zeros(12, int), np.ones(9, bool)), r"kept is bool \(9,\)"),
    ],
)
def test_what_does_not_fit_is_refused(ask, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        ask()
