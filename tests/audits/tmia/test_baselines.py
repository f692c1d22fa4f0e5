"""Older membership attacks: against slow forms, against scikit-learn, and blind to the targets' membership."""

from __future__ import annotations

import dataclasses
import inspect
import math

import numpy as np
import pytest
import torch
from scipy.interpolate import PchipInterpolator

from audits.errors import BadInput
from audits.seeds import derive_seed
from audits.signals.loss import losses
from audits.tmia.attacks.fmia import Fmia
from audits.tmia.attacks.gmia import Gmia1, Gmia2, Gmia3, largest
from audits.tmia.attacks.label_gap import LabelGap
from audits.tmia.attacks.network import Network
from audits.tmia.attacks.noise_votes import NoiseVotes
from audits.tmia.attacks.pmia import Pmia
from audits.tmia.attacks.shadows import ShadowRows, Verdict
from audits.tmia.attacks.yeom import Yeom
from tests.audits.tmia.shadow_rows import CLASSES, POINTS, TARGETS, accuracy, only, posteriors, shadow, targets
from tests.cases.families import as_one

QUICK = Network(epochs=15, batch_size=64)
BRIEF = Network(epochs=3, batch_size=64)  # where nothing is asked of what it finds
ATTACKS = (Pmia, Gmia1, Gmia2, Gmia3, Fmia, Yeom, LabelGap, NoiseVotes)


# --------------------------------------------------------------------------------------------- what all have in common


@as_one("attack", ATTACKS)
def test_every_attack_is_frozen_declares_its_access_and_is_not_told_who_is_a_member(attack: type) -> None:
    assert attack.access in ("labels", "posteriors")
    assert dataclasses.fields(attack) is not None and attack.__dataclass_params__.frozen
    assert not {"member", "membership", "truth", "inside"} & set(inspect.signature(attack.judge).parameters)


@pytest.mark.parametrize("name", ["gmia1", "gmia2", "gmia3", "fmia", "yeom", "label_gap", "votes", "pmia"])
def test_a_target_is_judged_alike_whoever_is_judged_with_it(name: str) -> None:
    _, label, seen = targets()
    found, alone = judged(name, seen, label), judged(name, seen[1:2], label)
    assert found.decision.shape == found.score.shape == (TARGETS, POINTS) and found.attacked.shape == (POINTS,)
    assert found.decision.dtype == found.attacked.dtype == bool and found.score.dtype == np.float64
    np.testing.assert_array_equal(found.decision[1:2], alone.decision)
    np.testing.assert_allclose(found.score[1:2], alone.score, rtol=0, atol=1e-5)
    again = judged(name, seen, label)
    np.testing.assert_array_equal(found.score, again.score)
    assert not found.decision[:, ~found.attacked].any()
    assert found.decision.any() and not found.decision.all()


def judged(name: str, seen: np.ndarray, label: np.ndarray) -> Verdict:
    """Judge targets' posteriors by the attack ``name`` with shadows, or reference models, of fixed seeds."""
    reference = np.stack([posteriors(np.zeros(POINTS, bool), label, 100 + model) for model in range(30)])
    match name:
        case "gmia1":
            return Gmia1(network=BRIEF).judge(shadow(1), seen, seed=3)
        case "gmia2":
            return Gmia2(network=BRIEF).judge([shadow(1), shadow(2)], seen, seed=3)
        case "gmia3":
            return Gmia3(level=0.2).judge([shadow(1)], seen)
        case "fmia":
            return Fmia(BRIEF).judge([shadow(1)], seen, label, seed=3)
        case "yeom":
            return Yeom().judge([shadow(1)], seen, label)
        case "label_gap":
            return LabelGap().judge(seen.argmax(-1), label)
        case "votes":
            shares, others = (np.round(part.max(-1), 1) for part in (seen, reference))
            return NoiseVotes().judge(shares, others)
        case _:
            few = np.arange(POINTS) % 3 / 10
            return Pmia().judge(losses(seen, label), losses(reference, label), few)


def test_a_score_that_is_not_a_number_is_an_error() -> None:
    _, label, seen = targets()
    seen[1, 4] = math.nan
    with pytest.raises(FloatingPointError, match="not a number"):
        judged("yeom", seen, label)


# --------------------------------------------------------------------------------------------------------------- PMIA


def test_pmia_is_the_smoothed_distribution_function_on_points_with_few_neighbours() -> None:
    _, label, seen = targets()
    reference = np.stack([posteriors(np.zeros(POINTS, bool), label, 100 + model) for model in range(40)])
    own, others = losses(seen, label), losses(reference, label)
    expected = np.where(np.arange(POINTS) % 4 == 0, 0.05, 0.1)
    verdict = Pmia(level=0.05).judge(own, others, expected)
    for target in range(TARGETS):
        for point in range(POINTS):
            knots = np.sort(others[:, point])
            curve = PchipInterpolator(knots, np.arange(1, 41) / 40)
            loss = own[target, point]
            p = 0.0 if loss < knots[0] else 1.0 if loss > knots[-1] else float(curve(loss))
            p = max(p, 1 / 41)
            assert verdict.score[target, point] == pytest.approx(1 - p, abs=1e-9)
            assert verdict.decision[target, point] == (p <= 0.05 and expected[point] < 0.1)
    np.testing.assert_array_equal(verdict.attacked, np.arange(POINTS) % 4 == 0)


def test_pmia_refuses_a_level_that_its_models_cannot_reach_and_shapes_that_do_not_fit() -> None:
    with pytest.raises(BadInput, match="n_ref"):
        Pmia(level=0.05).judge(np.ones((2, 3)), np.ones((10, 3)), np.zeros(3))
    with pytest.raises(BadInput, match="expected neighbours"):
        Pmia().judge(np.ones((2, 3)), np.ones((40, 3)), np.zeros(4))
    with pytest.raises(BadInput, match="rare is 0"):
        Pmia(rare=0)


# --------------------------------------------------------------------------------------------------------------- GMIA


def test_the_largest_posteriors_are_sorted_and_padded() -> None:
    seen = np.random.default_rng(0).random((5, 2, 6))
    slow = [[sorted(row, reverse=True)[:3] for row in block] for block in seen.tolist()]
    np.testing.assert_array_equal(largest(seen, 3), slow)
    np.testing.assert_array_equal(largest(np.array([[0.3, 0.7]]), 3), [[0.7, 0.3, 0.0]])


def test_gmia_learns_on_the_shadow_and_judges_the_target() -> None:
    member, _, seen = targets()
    rows = shadow(1, 600)
    upright = Gmia1(network=QUICK).judge(rows, seen, seed=0)
    turned = Gmia1(network=QUICK).judge(dataclasses.replace(rows, member=~rows.member), seen, seed=0)
    assert accuracy(upright, member) > 0.7 and accuracy(turned, member) < 0.3
    np.testing.assert_array_equal(upright.decision, upright.score > 0)


def test_gmia_reads_the_three_largest_whatever_their_classes() -> None:
    _, _, seen = targets()
    attack, rows = Gmia1(network=BRIEF), shadow(1)
    found = attack.judge(rows, seen, seed=0)
    moved = attack.judge(rows, seen[..., [2, 0, 3, 1]], seed=0)
    np.testing.assert_array_equal(found.score, moved.score)
    fourth = np.concatenate([largest(seen, 3), np.zeros((TARGETS, POINTS, 1))], axis=-1)
    np.testing.assert_allclose(attack.judge(rows, fourth, seed=0).score, found.score, rtol=0, atol=1e-6)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")  # scikit-learn's, which would go on after 50 epochs
def test_the_network_is_about_as_good_as_that_of_scikit_learn() -> None:
    from sklearn.neural_network import MLPClassifier

    member, _, seen = targets(lift=1.0)
    rows = shadow(1, 500, lift=1.0)
    ours = Gmia1().judge(rows, seen, seed=0)
    theirs = MLPClassifier((64,), learning_rate_init=0.01, batch_size=64, max_iter=50, alpha=0, random_state=0)
    theirs.fit(largest(rows.posterior, 3), rows.member)
    decided = theirs.predict(largest(seen, 3).reshape(-1, 3)).reshape(member.shape)
    assert abs(accuracy(ours, member) - float((decided == member).mean())) < 0.05
    assert float((ours.decision == decided).mean()) > 0.85


def test_the_seed_decides_the_network_and_the_global_generator_does_not() -> None:
    _, _, seen = targets()
    torch.manual_seed(1)
    first = Gmia1(network=BRIEF).judge(shadow(1), seen, seed=0)
    torch.manual_seed(2)
    np.testing.assert_array_equal(first.score, Gmia1(network=BRIEF).judge(shadow(1), seen, seed=0).score)
    assert not np.array_equal(first.score, Gmia1(network=BRIEF).judge(shadow(1), seen, seed=1).score)


def test_adversary_2_takes_shadows_of_other_classes_and_one_shadow_is_adversary_1() -> None:
    member, _, seen = targets()
    two = ShadowRows(shadow(2, 100).posterior[:, :2], shadow(2, 100).member, shadow(2, 100).label)
    mixed = Gmia2(network=QUICK).judge([shadow(1), two], seen, seed=0)
    alone = Gmia2(network=QUICK).judge([shadow(1)], seen, seed=0)
    np.testing.assert_array_equal(alone.score, Gmia1(network=QUICK).judge(shadow(1), seen, seed=0).score)
    assert not np.array_equal(alone.score, mixed.score) and accuracy(mixed, member) > 0.6


@as_one("level", [0.01, 0.05, 0.2, 0.6, 0.999])
def test_adversary_3_keeps_its_level_on_shadows_non_members_as_tightly_as_can_be(level: float) -> None:
    rows = [shadow(1, 160), shadow(2, 30)]
    unseen = np.concatenate([each.posterior[~each.member].max(1) for each in rows])
    verdict = Gmia3(level).judge(rows, np.concatenate([each.posterior[~each.member] for each in rows])[None])
    np.testing.assert_array_equal(verdict.score[0], unseen)
    assert int(verdict.decision.sum()) == max(n for n in range(len(unseen) + 1) if n / len(unseen) <= level)


def test_adversary_3_is_not_moved_by_shadows_members() -> None:
    _, _, seen = targets()
    rows = shadow(1)
    other = np.where(rows.member[:, None], 1 / CLASSES, rows.posterior)
    found = [Gmia3().judge([dataclasses.replace(rows, posterior=each)], seen) for each in (rows.posterior, other)]
    np.testing.assert_array_equal(found[0].decision, found[1].decision)


# --------------------------------------------------------------------------------------------------------------- FMIA


def test_fmia_trains_one_network_for_each_class_and_a_pooled_one_for_scarce_classes() -> None:
    _, label, seen = targets()
    rows = shadow(1, 300)
    scarce = np.flatnonzero(rows.label == 3)[9:]  # nine rows of class 3 stay
    lonely = np.flatnonzero((rows.label == 2) & rows.member)  # class 2 has non-members alone
    kept = np.delete(np.arange(300), np.concatenate([scarce, lonely]))
    rows = ShadowRows(rows.posterior[kept], rows.member[kept], rows.label[kept])
    found = Fmia(BRIEF).judge([rows], seen, label, seed=7)
    for one in range(CLASSES):
        own = rows.label == one
        if one in (0, 1):
            judge = BRIEF.fitted(rows.posterior[own], rows.member[own], derive_seed(7, "fmia", one))
        else:
            judge = BRIEF.fitted(rows.posterior, rows.member, derive_seed(7, "fmia", "pooled"))
        np.testing.assert_allclose(found.score[:, label == one], judge(seen[:, label == one]), rtol=0, atol=1e-5)


def test_ten_rows_are_enough_for_a_network_of_the_class() -> None:
    seen = targets()[2]
    rows = shadow(1, 300)
    scores = []
    for count in (9, 10):
        kept = np.delete(np.arange(300), np.flatnonzero(rows.label == 0)[count:])
        part = ShadowRows(rows.posterior[kept], rows.member[kept], rows.label[kept])
        others = dataclasses.replace(part, member=np.where(part.label == 0, part.member, ~part.member))
        zero = np.zeros(POINTS, int)
        pair = [Fmia(BRIEF).judge([each], seen, zero, seed=7).score for each in (part, others)]
        scores.append(np.array_equal(*pair))
    assert scores == [False, True]  # with nine rows the other classes speak as well


def test_fmia_judges_every_target_by_the_label_it_is_given_for_it() -> None:
    member, label, seen = targets()
    rows = [shadow(1, 300), shadow(2, 300)]
    one_for_all = Fmia(QUICK).judge(rows, seen, label, seed=0)
    each_its_own = Fmia(QUICK).judge(rows, seen, np.stack([label, (label + 1) % CLASSES, label]), seed=0)
    assert accuracy(one_for_all, member) > 0.7
    np.testing.assert_allclose(one_for_all.score[[0, 2]], each_its_own.score[[0, 2]], rtol=0, atol=1e-5)
    assert np.abs(one_for_all.score[1] - each_its_own.score[1]).min() > 1e-3


@as_one(
    "call, says",
    [
        (lambda seen: Gmia1().judge(only(shadow(1), shadow(1).member), seen, 0), "rows of one kind"),
        (lambda seen: Gmia2().judge([], seen, 0), "no shadow"),
        (lambda seen: Gmia1(top=0).judge(shadow(1), seen, 0), "top is 0"),
        (lambda seen: Gmia3().judge([only(shadow(1), shadow(1).member)], seen), "non-members"),
        (lambda seen: Gmia3().judge([], seen), "non-members"),
        (lambda seen: Gmia3(level=1.0), "level is 1.0"),
        (lambda seen: Fmia().judge([], seen, 0, 0), "no shadow"),
        (lambda seen: Fmia().judge([shadow(1)], seen[..., :3], 0, 0), r"\[3, 4\] classes"),
    ],
)
def test_what_cannot_work_is_refused(call, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=says):
        call(targets()[2])
