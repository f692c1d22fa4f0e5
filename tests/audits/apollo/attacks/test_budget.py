"""Attacks at equal queries: which stored labels are read within a budget, and who chooses them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audits.apollo.attacks import budget as budget_file
from audits.apollo.attacks.budget import at_budget, telling
from audits.apollo.attacks.calibration import calibrated
from audits.apollo.evidence import Walks
from audits.errors import BadInput
from tests.cases.families import thinned
from tests.cases.synthetic_evidence import auc


def walks(seed: int, points: int = 40, steps: int = 4, head: int = 1) -> tuple[Walks, np.ndarray]:
    """Return walks with bits drawn at random, somewhat likelier to be right inside."""
    rng = np.random.default_rng(seed)
    forgotten = rng.permuted(np.arange(points) < points // 2)
    questions = head + 2 * steps
    inside = np.stack([np.stack([rng.permuted(np.arange(6) < 3) for _ in range(points)], axis=1) for _ in range(2)])
    help_of = rng.uniform(0, 0.6, questions)
    pseudo = rng.uniform(size=(2, 6, points, questions)) < 0.4 + inside[..., None] * help_of
    target = rng.uniform(size=(2, points, questions)) < 0.4 + forgotten[None, :, None] * help_of
    if head:
        target[1, :, 0] = target[0, :, 0]
    radius = np.ones((2, points, 2, steps))
    cost = np.full(points, head + 4 * steps, dtype=np.int32)
    return Walks(pseudo, inside, ~inside, target, radius, radius, cost), forgotten


@pytest.mark.parametrize("head", [0, 1])
def test_the_full_budget_is_the_calibrated_score(head) -> None:
    found, _ = walks(0, head=head)
    whole, full = calibrated(found), at_budget(found, head + 16)
    np.testing.assert_allclose(full.score, whole.score, rtol=0, atol=1e-12)
    np.testing.assert_allclose(full.null, whole.null, rtol=0, atol=1e-12)
    assert full.queries.tolist() == whole.queries.tolist()


@pytest.mark.parametrize("budget", thinned((1, 2, 5, 8, 16), (5,)))
def test_only_labels_within_the_budget_are_read_and_the_null_reads_none(budget) -> None:
    found, _ = walks(1)
    finding = at_budget(found, budget)
    own = 3
    read = 0
    for number in range(2):
        for question in range(1, 9):
            target = found.target.copy()
            target[number, own, question] ^= True
            other = at_budget(replace(found, target=target), budget)
            np.testing.assert_array_equal(other.null, finding.null)
            assert (other.score != finding.score).sum() <= 1
            read += bool(other.score[own] != finding.score[own])
    target = found.target.copy()
    target[:, own, 0] ^= True
    other = at_budget(replace(found, target=target), budget)
    assert other.score[own] != finding.score[own]
    np.testing.assert_array_equal(other.null, finding.null)
    assert read == budget - 1
    assert finding.queries.tolist() == [budget] * 40


def test_the_most_telling_steps_are_asked_first() -> None:
    inside = np.array([[True] * 50, [False] * 50])
    pseudo = np.zeros((2, 50, 5), dtype=bool)
    pseudo[0, :, 3], pseudo[0, :30, 1], pseudo[1, :10, 4] = True, True, True
    assert telling(pseudo, inside, ~inside, 1, 2).tolist() == [0, 1, 3]
    assert telling(pseudo, inside, ~inside, 1, 0).tolist() == [0]
    assert telling(pseudo, inside, ~inside, 0, 2).tolist() == [1, 3]
    assert telling(pseudo, inside, ~inside, 0, 4).tolist() == [0, 1, 3, 4]


def test_what_a_walk_asks_is_chosen_by_the_pseudo_targets_of_the_other(monkeypatch) -> None:
    seen: list[np.ndarray] = []

    def watched(pseudo, inside, outside, head, share):
        seen.append(inside)
        return telling(pseudo, inside, outside, head, share)

    monkeypatch.setattr(budget_file, "telling", watched)
    found, _ = walks(2)
    at_budget(found, 3)
    np.testing.assert_array_equal(seen, found.inside[::-1])


@pytest.mark.parametrize("budget", [0, 18])
def test_a_budget_outside_of_what_was_asked_is_refused(budget) -> None:
    found, _ = walks(3)
    with pytest.raises(BadInput, match=f"a budget of {budget} labels per candidate; these walks hold 1 to 17"):
        at_budget(found, budget)


def test_power_grows_with_the_budget() -> None:
    found, forgotten = walks(4, points=400)
    powers = [auc(at_budget(found, budget).score, forgotten) for budget in (1, 5, 17)]
    assert powers[0] + 0.03 < powers[1] and powers[0] + 0.1 < powers[2]
