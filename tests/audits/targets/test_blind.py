"""Members told from non-members without a model: not by chance draws, and at once where they differ."""

from __future__ import annotations

import numpy as np
import pytest

from audits.errors import BadInput
from audits.targets.blind import blind_auc, blind_scores
from tests.cases.simulations import fewer, sizes


def points(rng: np.random.Generator, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    member = rng.permutation(np.arange(120) < 60)
    labels = rng.integers(0, 3, 120)
    pattern = np.where(np.arange(8) % 2, 1.0, -1.0)  # another source
    x = rng.normal(size=(120, 6, 8)) + labels[:, None, None] + shift * member[:, None, None] * pattern
    return x.astype(np.float32), labels, member


@sizes(0.15)
def test_members_by_chance_are_not_told_apart(size: float) -> None:
    rng = np.random.default_rng(0)
    found = np.array([blind_auc(*points(rng), seed=run) for run in range(fewer(60, size))])
    assert abs(found[:, 0].mean() - 0.5) < 0.02 / np.sqrt(size)
    most = 5 if size == 1 else 3  # 2.5 % of the runs each
    assert (found[:, 1] > 0.5).sum() <= most and (found[:, 2] < 0.5).sum() <= most


def test_members_that_differ_by_inputs_or_by_labels_are() -> None:
    rng = np.random.default_rng(1)
    area, low, _ = blind_auc(*points(rng, 0.5))
    assert area > 0.8 and low > 0.7
    x, labels, member = points(rng)
    assert blind_auc(np.zeros_like(x), np.where(member, labels, labels + 1), member)[1] > 0.6
    assert blind_auc(np.zeros_like(x), np.where(member, 0, 1), member)[0] == 1.0


def test_no_point_is_scored_by_a_fit_that_has_seen_it() -> None:
    """The label of a point changes its own score only by what others are taught."""
    x, labels, member = points(np.random.default_rng(2))
    apart = np.tile(np.eye(120, dtype=np.float32), (1, 1))  # a number of its own for each point: learnt by heart
    assert abs(blind_auc(apart, labels, member)[0] - 0.5) < 0.15
    assert blind_scores(x, labels, member, seed=3).shape == (120,)
    with pytest.raises(BadInput, match="4 points of a side"):
        blind_scores(x, labels, np.arange(120) < 4)
