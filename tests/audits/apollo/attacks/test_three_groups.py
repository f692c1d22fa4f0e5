"""Three groups from walks: the fit against scikit-learn by hand, what it tells apart, what it never reads."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from audits.apollo.attacks.three_way import groups_of
from audits.apollo.evidence import Walks
from audits.errors import BadInput

MODELS, POINTS, STEPS = 8, 30, 3
EFFECT = np.array([1.0, 3.0, 0.0])  # of having forgotten, kept, never seen a point
FORGET, RETAINED, UNSEEN = range(3)


def made(seed: int, group: np.ndarray, effect: np.ndarray = EFFECT) -> Walks:
    """Return walks of ``group`` (K,) asked of a target, with pseudo-targets whose groups are balanced per point."""
    rng = np.random.default_rng(seed)
    pattern = np.repeat([FORGET, RETAINED, UNSEEN, UNSEEN], MODELS // 4)
    sides = np.stack([[rng.permutation(pattern) for _ in range(POINTS)] for _ in range(2)]).swapaxes(1, 2)
    difficulty = rng.normal(0.0, 1.0, POINTS)
    hard = np.concatenate([[0.0], np.arange(1, STEPS + 1), -np.arange(1, STEPS + 1)]) / STEPS

    def answers(groups: np.ndarray) -> np.ndarray:
        margin = difficulty + effect[groups] + rng.normal(0.0, 0.5, groups.shape)
        return margin[..., None] + rng.normal(0.0, 0.3, (*groups.shape, len(hard))) > 1.0 + 2.0 * hard

    target = answers(group)
    return Walks(
        pseudo=answers(sides),
        inside=sides == FORGET,
        outside=sides == UNSEEN,
        target=np.stack([target, target]),
        confidence=np.full((2, POINTS, 2, STEPS), 0.5),
        radius=np.broadcast_to(np.arange(1.0, STEPS + 1), (2, POINTS, 2, STEPS)),
        queries=np.full(POINTS, 1 + 4 * STEPS, dtype=np.int32),
    )


TRUTH = np.arange(POINTS) % 3


def by_hand(walks: Walks) -> np.ndarray:
    """Return the log-odds (K, 3) by loops over walks, models and points."""
    from sklearn import linear_model

    blocks = [[0], range(1, 1 + STEPS), range(1 + STEPS, 1 + 2 * STEPS)]
    found = np.zeros((2, POINTS, 3))
    for g in range(2):
        group = np.where(walks.inside[g], FORGET, np.where(walks.outside[g], UNSEEN, RETAINED))
        share = np.array([[[walks.pseudo[g, i, k, list(b)].mean() for b in blocks] for k in range(POINTS)]
                          for i in range(MODELS)])  # fmt: skip
        asked = np.array([[walks.target[g, k, list(b)].mean() for b in blocks] for k in range(POINTS)])

        def mean(k: int, side: int, leave: int, group=group, share=share) -> np.ndarray:
            own = [i for i in range(MODELS) if group[i, k] == side and i != leave]
            return share[own, k].mean(0) if own else share[group == side].mean(0)

        for fold in range(5):
            rows = [(i, k) for i in range(MODELS) for k in range(POINTS) if k % 5 != fold]
            x = np.array([np.concatenate([share[i, k], *(mean(k, side, i) for side in range(3))]) for i, k in rows])
            y = np.array([group[i, k] for i, k in rows])
            centre, scale = x.mean(0), np.where(x.std(0) > 1e-12, x.std(0), 1.0)
            fit = linear_model.LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000, tol=1e-8)
            fit.fit((x - centre) / scale, y)
            for k in range(fold, POINTS, 5):
                row = np.concatenate([asked[k], *(mean(k, side, -1) for side in range(3))])
                p = fit.predict_proba(((row - centre) / scale)[None])[0]
                found[g, k] = np.log(p) - np.log1p(-p)
    return found.mean(0)


def test_log_odds_equal_a_fit_by_hand():
    walks = made(0, TRUTH)
    np.testing.assert_allclose(groups_of(walks), by_hand(walks), atol=1e-9)


@pytest.mark.long
def test_the_three_groups_are_told_apart():
    shares = []
    for seed in range(2):
        said = groups_of(made(seed, TRUTH)).argmax(1)
        shares.append(np.mean([(said[group == TRUTH] == group).mean() for group in range(3)]))
    assert np.mean(shares) > 1 / 3 + 5 * np.sqrt(2 / 9 / (2 * POINTS))


@pytest.mark.long
def test_without_an_effect_of_membership_nothing_is_told_apart():
    shares = []
    for seed in range(4):
        said = groups_of(made(seed, TRUTH, effect=np.zeros(3))).argmax(1)
        shares.append((said == TRUTH).mean())
    assert abs(np.mean(shares) - 1 / 3) < 4 * np.sqrt(2 / 9 / (4 * POINTS))


def test_a_point_is_judged_by_its_own_answers_and_pseudo_targets_alone():
    walks, other = made(0, TRUTH), np.random.default_rng(1).random((2, POINTS, 1 + 2 * STEPS)) < 0.5
    whole = groups_of(walks)
    changed = walks.target.copy()
    changed[:, 1:] = other[:, 1:]
    again = groups_of(Walks(**{**walks.arrays(), "target": changed}))
    np.testing.assert_array_equal(again[0], whole[0])
    assert not np.array_equal(again[1:], whole[1:])
    assert list(inspect.signature(groups_of).parameters) == ["walks"], "the truth has no way in"


def test_shadows_that_keep_no_candidate_are_refused():
    walks = made(0, TRUTH)
    with pytest.raises(BadInput, match=r"set split\.candidates\.retained"):
        groups_of(Walks(**{**walks.arrays(), "outside": ~walks.inside}))
