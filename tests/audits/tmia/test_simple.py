"""Loss threshold, label gap and noise votes against slow loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from audits.seeds import derive_seed, torch_generator
from audits.signals.loss import losses
from audits.tmia.attacks.label_gap import LabelGap
from audits.tmia.attacks.noise_votes import NoiseVotes
from audits.tmia.attacks.shadows import ShadowRows
from audits.tmia.attacks.yeom import Yeom
from tests.audits.tmia.shadow_rows import POINTS, TARGETS, only, shadow, targets
from tests.cases.families import as_one


def test_yeoms_threshold_is_the_mean_loss_of_shadows_members() -> None:
    _, label, seen = targets()
    rows = [shadow(1, 60), shadow(2, 20)]
    known = [
        -math.log(each.posterior[i, each.label[i]]) for each in rows for i in range(len(each.label)) if each.member[i]
    ]
    threshold = sum(known) / len(known)
    verdict = Yeom().judge(rows, seen, label)
    for target in range(TARGETS):
        for point in range(POINTS):
            loss = -math.log(seen[target, point, label[point]])
            assert verdict.decision[target, point] == (loss < threshold)
            assert verdict.score[target, point] == pytest.approx(-loss)


def test_losses_are_clipped_and_take_a_label_for_all_targets_or_for_each() -> None:
    seen = np.array([[[1.0, 0.0], [0.25, 0.75]], [[0.5, 0.5], [0.0, 1.0]]])
    np.testing.assert_allclose(losses(seen, [0, 0]), -np.log([[1 - 1e-7, 0.25], [0.5, 1e-7]]))
    np.testing.assert_allclose(losses(seen, [[0, 1], [1, 1]]), -np.log([[1 - 1e-7, 0.75], [0.5, 1 - 1e-7]]))


def test_label_gap_is_whether_the_label_is_right() -> None:
    verdict = LabelGap().judge([[0, 1, 2], [1, 1, 2]], [0, 1, 1])
    assert verdict.decision.tolist() == [[True, True, False], [False, True, False]]
    np.testing.assert_array_equal(verdict.score, verdict.decision)


def labels(points: torch.Tensor) -> torch.Tensor:
    return (points.sum(1) > 0).long() + (points[:, 0] > 0.3).long()


def test_noise_votes_are_the_slow_share_and_depend_on_the_point_alone() -> None:
    x = 0.3 * torch.randn(11, 5, generator=torch_generator(0), dtype=torch.float64)
    y, ids = labels(x), np.arange(11) * 7
    attack = NoiseVotes(sigma=0.4, copies=25)
    found = attack.ask(labels, x, y, ids, seed=2, value_range=(-0.5, 0.5), chunk=4)
    slow = []
    for point in range(11):
        noise = torch.randn(25, 5, generator=torch_generator(derive_seed(2, "noise votes", int(ids[point]))))
        kept = [int(labels((x[point] + 0.4 * row.double()).clamp(-0.5, 0.5)[None])) == int(y[point]) for row in noise]
        slow.append(sum(kept) / 25)
    np.testing.assert_array_equal(found, slow)
    assert len(set(slow)) > 3
    order = np.random.default_rng(0).permutation(11)
    np.testing.assert_array_equal(
        attack.ask(labels, x[order], y[order], ids[order], seed=2, value_range=(-0.5, 0.5)), found[order]
    )
    assert not np.array_equal(attack.ask(labels, x, y, ids, seed=3, value_range=(-0.5, 0.5)), found)
    assert not np.array_equal(attack.ask(labels, x, y, ids, seed=2), found)


def test_noise_votes_ask_as_many_labels_as_there_are_copies() -> None:
    asked = []

    def counted(points: torch.Tensor) -> torch.Tensor:
        asked.append(len(points))
        return labels(points)

    NoiseVotes(copies=6).ask(counted, torch.zeros(10, 5), torch.zeros(10).long(), np.arange(10), seed=0, chunk=4)
    assert asked == [24, 24, 12]


def test_noise_votes_decide_by_the_rank_among_reference_models_and_ties_count_against() -> None:
    reference = np.tile(np.arange(19)[:, None] / 20, (1, 3))
    reference[-1, 1] = 0.95
    verdict = NoiseVotes(level=0.05).judge([[0.95, 0.95, 0.85], [1.0, 1.0, 0.0]], reference)
    assert verdict.decision.tolist() == [[True, False, False], [True, True, False]]
    for target, row in enumerate([[0.95, 0.95, 0.85], [1.0, 1.0, 0.0]]):
        for point, share in enumerate(row):
            p = (1 + sum(other >= share for other in reference[:, point])) / 20
            assert verdict.score[target, point] == pytest.approx(1 - p)


def test_a_shadow_that_diverged_is_an_error() -> None:
    with pytest.raises(FloatingPointError, match="shadow may have diverged"):
        ShadowRows(np.array([[0.5, math.nan]]), np.ones(1, bool), np.zeros(1, int))


@as_one(
    "call, says",
    [
        (lambda seen: Yeom().judge([only(shadow(1), ~shadow(1).member)], seen, 0), "no shadow row is a member"),
        (lambda seen: NoiseVotes().judge(np.ones((1, 2)), np.ones((5, 2))), "n_ref"),
        (lambda seen: NoiseVotes(sigma=0.0), "sigma is 0"),
        (lambda seen: NoiseVotes(copies=0), "copies is 0"),
        (lambda seen: ShadowRows(np.ones((3, 2)), np.ones(2, bool), np.ones(3, int)), "2 memberships"),
    ],
)
def test_what_cannot_work_is_refused(call, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=says):
        call(targets()[2])
