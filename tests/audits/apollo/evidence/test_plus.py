"""Apollo plus: committees of shadows, the ladder of their odds, and where a model stands on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import KINDS, Case, Evidence, Group, Questions, SearchSettings
from audits.apollo.evidence.plus import WIDEST, Ladders, Standings, built, committees_of, standing
from tests.audits.apollo.evidence.small_networks import CLASSES, models
from tests.cases.families import as_one
from tests.cases.synthetic_evidence import auc


def plus_case(models_of_half: int = 8, points: int = 5) -> Case:
    """Return a case of apollo_plus over random networks with 6 inputs, each candidate inside half of the shadows."""
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(points, 6, generator=generator, dtype=torch.float64)
    ids = np.arange(points)
    inside = (np.arange(models_of_half)[:, None] + ids) % 2 == 0
    halves = [Group([], models(models_of_half, seed), inside, ~inside) for seed in (11, 12)]
    asked = Questions(x, torch.arange(points) % CLASSES, ids, ids * 0, (6,), None, 0, chunk=2)
    return Case(asked, SearchSettings(), online=(halves[0], halves[1]))


def log_odds(members: list[nn.Module], point: torch.Tensor, label: int) -> torch.Tensor:
    chances = torch.stack([model(point[None]).softmax(1)[0, label] for model in members])
    return torch.log(chances / (1 - chances)).mean()


def test_a_committee_is_undecided_at_the_foot_of_its_ladder_and_a_rung_lowers_its_odds_by_one() -> None:
    case = plus_case()
    torch.manual_seed(4)
    linear = [nn.Linear(6, CLASSES).double().requires_grad_(False) for _ in range(8)]
    for model in linear[1:]:
        model.weight.copy_(linear[0].weight + 0.1 * model.weight)
    half = replace(case.shadows[0], unlearned=linear)
    ladders = built(half, replace(case, settings=SearchSettings(epsilon=4.0)))
    seats = committees_of(half, 5)
    assert ladders.foot.shape == ladders.rung.shape == (5, 5, 6)
    for k in range(5):
        for committee in range(5):
            members = [half.unlearned[i] for i in np.flatnonzero(seats[committee, :, k])]
            foot = ladders.foot[k, committee].clone().requires_grad_(True)
            odds = log_odds(members, foot, k % CLASSES)
            (gradient,) = torch.autograd.grad(odds, foot)
            assert abs(odds) < 1e-6
            assert torch.allclose(ladders.rung[k, committee], -gradient / gradient.square().sum(), rtol=0, atol=1e-9)


def test_committees_are_all_and_quarters_of_the_pairs_and_seat_nobody_who_kept_the_candidate() -> None:
    half = plus_case().shadows[0]
    seats = committees_of(half, 5)[:, :, 0]
    assert seats[0].all()
    assert [np.flatnonzero(seat).tolist() for seat in seats[1:]] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    wide = plus_case(models_of_half=16).shadows[0]
    assert [np.flatnonzero(seat).tolist() for seat in committees_of(wide, 5)[1:, :, 0]] == [
        [0, 1, 8, 9], [2, 3, 10, 11], [4, 5, 12, 13], [6, 7, 14, 15]
    ]  # fmt: skip
    narrow = plus_case(models_of_half=4).shadows[0]
    assert [np.flatnonzero(seat).tolist() for seat in committees_of(narrow, 5)[1:, :, 0]] == [[0, 1], [2, 3]] * 2
    kept = replace(
        half, inside=half.inside & (np.arange(8) > 1)[:, None], outside=half.outside & (np.arange(8) > 1)[:, None]
    )
    seats = committees_of(kept, 5)[:, :, 0]
    assert not seats[:, :2].any() and seats[1].tolist() == seats[0].tolist()


@as_one("labels", [1, 2, 3, 6])
def test_a_standing_is_the_number_of_rungs_on_which_a_model_answers_the_true_label(labels) -> None:
    rungs = 2**labels - 1
    asked = Questions(
        torch.zeros(40, 1), torch.zeros(40, dtype=torch.int64), np.arange(40), np.arange(40), (1,), None, 0
    )
    ladders = Ladders(torch.zeros(40, 2, 1), torch.ones(40, 2, 1))
    edge = torch.linspace(-WIDEST - 0.5, WIDEST + 0.5, 40)[:, None]
    heights = torch.linspace(-WIDEST, WIDEST, rungs) if rungs > 1 else torch.zeros(1)
    calls: list[int] = []

    def ask(points: torch.Tensor) -> torch.Tensor:
        calls.append(points.shape[1])
        return (points[..., 0] > edge).long()

    found = standing(ladders, ask, asked, labels)
    wanted = (heights[None] <= edge).sum(1)
    assert found[:, 0].tolist() == found[:, 1].tolist() == wanted.tolist()
    assert calls == [2] * labels


@as_one("steps", [1, 2, 3, 5, 7, 10, 50])
def test_apollo_plus_asks_no_more_than_apollo(steps) -> None:
    settings = SearchSettings(steps=steps)
    cost = KINDS["plus"].queries(settings, 21)
    assert 0 < cost <= KINDS["apollo"].queries(settings, 21)


def test_apollo_plus_weighs_a_standing_against_the_points_own() -> None:
    rng = np.random.default_rng(3)
    forgotten = rng.permuted(np.arange(120) < 60)
    inside = np.stack([[rng.permuted(np.arange(8) < 4) for _ in range(120)] for _ in range(2)]).transpose(0, 2, 1)
    own = rng.normal(0, 3, (2, 1, 120, 1))

    def rungs(effect: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return np.clip(np.round(1.5 + own + 1.5 * effect + rng.normal(size=shape)), 0, 3).astype(np.int16)

    pseudo = rungs(inside[..., None], (2, 8, 120, 5))
    target = rungs(forgotten[None, None, :, None], (2, 1, 120, 5))[:, 0]
    found = Standings(pseudo, inside, ~inside, target, np.full(120, 20, dtype=np.int32))
    finding = ATTACKS["apollo_plus"]().judge(Evidence({"plus": found}))
    assert auc(finding.score, forgotten) > auc(target.mean((0, 2)), forgotten) + 0.05
    assert len(finding.parts) == 2 * 4 and len(finding.null) == found.outside.sum()
    other = ATTACKS["apollo_plus"]().judge(Evidence({"plus": replace(found, target=3 - target)}))
    np.testing.assert_array_equal(other.null, finding.null)
