"""Label-only attacks at equal queries: distances to boundaries, one-query inputs, budgets read from stored walks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.attacks import ATTACKS
from audits.attacks import budget as budget_file
from audits.attacks.boundary_distance import bounded
from audits.attacks.budget import at_budget, telling
from audits.attacks.calibration import calibrated
from audits.errors import BadInput
from audits.evidence import KINDS, Case, Distances, Evidence, Group, Questions, SearchSettings, Walks
from audits.evidence.boundary import nearest
from audits.evidence.hop_skip_jump import TIERS, Schedule, schedule_within, signed_distances
from audits.evidence.oslo import FOOLED, LARGEST, fooling, surrogates
from audits.evidence.plus import WIDEST, Ladders, Standings, built, committees_of, standing
from audits.evidence.shadows import Shadows
from audits.evidence.yoqo import ALPHA, crafted_chunk, descent
from tests.synthetic_evidence import auc

CLASSES = 5


class Linear:
    """A linear classifier whose distances to the boundaries are known."""

    def __init__(self, dimensions: int, points: int) -> None:
        generator = torch.Generator().manual_seed(3)
        self.weight = torch.randn(CLASSES, dimensions, generator=generator, dtype=torch.float64)
        self.x = torch.randn(points, dimensions, generator=generator, dtype=torch.float64)
        self.pool = torch.randn(300, dimensions, generator=generator, dtype=torch.float64)
        self.y = self.labels(self.x)
        self.asked = torch.zeros(points, dtype=torch.int64)

    def labels(self, points: torch.Tensor) -> torch.Tensor:
        return (points @ self.weight.T).argmax(1)

    def counted(self, points: torch.Tensor) -> torch.Tensor:
        self.asked += len(points) // len(self.asked)
        return self.labels(points)

    def distance(self, k: int) -> float:
        """Return how far ``x[k]`` is from the nearest point of another class."""
        margins = self.x[k] @ self.weight.T
        gaps = [
            float((margins[self.y[k]] - margins[j]) / (self.weight[self.y[k]] - self.weight[j]).norm())
            for j in range(CLASSES)
            if j != self.y[k]
        ]
        return min(gaps)

    def starts(self, count: int, own_class: bool) -> torch.Tensor:
        """Return the ``count`` pool points nearest to each point, of its own class or of others."""
        found, classes = [], self.labels(self.pool)
        for x, y in zip(self.x, self.y, strict=True):
            pool = self.pool[(classes == y) == own_class]
            found.append(pool[(pool - x).norm(dim=1).argsort()[:count]])
        return torch.stack(found)

    def measured(self, schedule: Schedule, rows: slice = slice(None)) -> torch.Tensor:
        """Return the signed distances that a walk finds."""
        count = schedule.restarts * schedule.starts
        generators = [torch.Generator().manual_seed(k) for k in range(len(self.x))[rows]]
        self.asked = torch.zeros(len(generators), dtype=torch.int64)
        away, home = self.starts(count, False)[rows], self.starts(count, True)[rows]
        return signed_distances(self.counted, self.x[rows], self.y[rows], away, home, generators, schedule, None)


@pytest.mark.parametrize(
    ("dimensions", "budget", "median", "tail"), [(40, 1000, 1.12, 1.25), (40, 4000, 1.05, 1.15), (196, 4000, 1.15, 1.3)]
)
def test_a_walk_finds_the_distance_to_the_boundary_of_a_linear_model(dimensions, budget, median, tail) -> None:
    world = Linear(dimensions, points=60)
    ratio = world.measured(schedule_within(budget)) / torch.tensor([world.distance(k) for k in range(60)])
    assert (ratio >= 1 - 1e-9).all(), "no point nearer than the boundary lies across it"
    assert ratio.median() <= median
    assert ratio.quantile(0.9) <= tail


def test_a_wrong_label_gives_minus_the_distance_to_the_true_class() -> None:
    world = Linear(dimensions=6, points=40)
    true = world.y.clone()
    world.y = (world.y + 1) % CLASSES
    found = world.measured(schedule_within(2000))
    assert (found < 0).all() and found.isfinite().all()
    for k in range(5):
        normal = world.weight[world.y[k]] - world.weight[true[k]]
        assert -found[k] >= -float(world.x[k] @ normal / normal.norm()) - 1e-9


@pytest.mark.parametrize("budget", [4, 9, 21, 50, 100, 333, 1000, 4000])
def test_the_budget_is_kept_to_and_known_beforehand(budget) -> None:
    world = Linear(dimensions=6, points=5)
    schedule = schedule_within(budget)
    world.measured(schedule)
    assert set(world.asked.tolist()) == {schedule.queries}
    assert budget * 0.9 <= schedule.queries <= budget


def test_a_budget_without_a_walk_is_refused() -> None:
    assert schedule_within(4).queries == TIERS[-1].queries == 4
    with pytest.raises(BadInput, match=r"audit.queries is 3; a walk to the boundary takes 4"):
        schedule_within(3)


def test_distances_do_not_depend_on_batch_mates() -> None:
    world = Linear(dimensions=8, points=12)
    whole, part = world.measured(schedule_within(200)), world.measured(schedule_within(200), slice(4, 7))
    assert torch.allclose(whole[4:7], part, rtol=0, atol=1e-9)


def test_more_labels_bring_the_boundary_nearer() -> None:
    world = Linear(dimensions=20, points=40)
    means = [float(world.measured(schedule_within(budget)).mean()) for budget in (21, 100, 400, 4000)]
    assert means == sorted(means, reverse=True)


def test_no_other_side_is_infinitely_far() -> None:
    world = Linear(dimensions=4, points=6)
    world.weight *= 0
    anywhere = torch.ones((6, 2, 4), dtype=torch.float64)
    generators = [torch.Generator().manual_seed(k) for k in range(6)]
    found = signed_distances(world.labels, world.x, world.y, anywhere, anywhere, generators, schedule_within(21), None)
    assert found.tolist() == [float("inf") if label == 0 else -float("inf") for label in world.y]


def test_a_boundary_that_was_not_found_counts_as_the_extreme_of_the_pseudo_targets() -> None:
    pseudo = np.array([[-1.0, np.inf], [2.0, 0.0]])
    assert bounded(np.array([np.inf, -np.inf, 0.5]), pseudo).tolist() == [2.0, -1.0, 0.5]
    assert bounded(pseudo, pseudo).tolist() == [[-1.0, 2.0], [2.0, 0.0]]
    assert bounded(np.array([np.inf, -np.inf]), np.full((2, 2), np.inf)).tolist() == [1.0, -1.0]


def test_start_points_are_the_nearest_of_the_class_that_is_wanted() -> None:
    def questions(x: list[list[float]], y: list[int]) -> Questions:
        ids = np.arange(len(y))
        return Questions(torch.tensor(x), torch.tensor(y), ids, ids, (1,), None, 0)

    asked, population = questions([[0.0], [5.0]], [0, 1]), questions([[3.0], [1.0], [-2.0]], [0, 0, 1])
    assert nearest(asked, population, 2, own_class=True)[..., 0].tolist() == [[1.0, 3.0], [-2.0, -2.0]]
    assert nearest(asked, population, 2, own_class=False)[..., 0].tolist() == [[-2.0, -2.0], [3.0, 1.0]]
    lonely = questions([[0.0]], [7])
    assert nearest(lonely, population, 1, own_class=True)[..., 0].tolist() == [[1.0]]


def distances(rng: np.random.Generator, effect: float, points: int = 120) -> tuple[Distances, np.ndarray]:
    """Return distances that are longer by ``effect`` for models that have seen the point."""
    forgotten = rng.permuted(np.arange(points) < points // 2)
    inside = np.stack([rng.permuted(np.arange(8) < 4) for _ in range(points)], axis=1)
    own = rng.normal(1.0, 3.0, points)
    pseudo = own + effect * inside + rng.normal(size=inside.shape)
    target = own + effect * forgotten + rng.normal(size=points)
    return Distances(pseudo, inside, ~inside, target, np.full(points, 21, dtype=np.int32)), forgotten


def test_boundary_distance_weighs_a_distance_against_the_points_own() -> None:
    found, forgotten = distances(np.random.default_rng(0), effect=2.0)
    finding = ATTACKS["boundary_distance"]().judge(Evidence({"boundary": found}))
    assert auc(finding.score, forgotten) > 0.85 > 0.7 > auc(found.target, forgotten)
    assert len(finding.null) == found.outside.sum()
    assert finding.queries.tolist() == [21] * 120
    blind, forgotten = distances(np.random.default_rng(1), effect=0.0)
    finding = ATTACKS["boundary_distance"]().judge(Evidence({"boundary": blind}))
    assert 0.35 < auc(finding.score, forgotten) < 0.65
    assert 0.01 < finding.decide(0.05)[~forgotten].mean() < 0.15


def models(count: int, seed: int) -> list[nn.Module]:
    torch.manual_seed(seed)
    made = [nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, CLASSES)).double().eval() for _ in range(count)]
    return [model.requires_grad_(False) for model in made]


def shadows_of_six() -> tuple[Shadows, torch.Tensor, torch.Tensor]:
    torch.manual_seed(5)
    inside = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=torch.bool)
    outside = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=torch.bool)
    shadows = Shadows(models(4, 1), models(4, 2), inside, (6,), outside)
    return shadows, torch.rand(3, 6, dtype=torch.float64), torch.tensor([0, 1, 2])


def test_yoqos_loss_and_gradient_are_the_papers() -> None:
    shadows, x, y = shadows_of_six()
    instead = torch.tensor([3, 4, 0])
    value, gradient = descent(shadows, shadows.sides(torch.arange(3)), x, y, instead)
    for k in range(3):
        point = x[k : k + 1].clone().requires_grad_(True)
        inner = [F.cross_entropy(shadows.unlearned[i](point), y[k : k + 1]) for i in range(4) if shadows.inside[i, k]]
        outer = [
            F.cross_entropy(shadows.original[i](point), instead[k : k + 1]) for i in range(4) if shadows.never[i, k]
        ]
        loss = torch.stack(inner).mean() + ALPHA * torch.stack(outer).mean()
        assert abs(value[k] - loss.detach()) < 1e-12
        assert torch.allclose(gradient[k], torch.autograd.grad(loss, point)[0][0], rtol=0, atol=1e-12)


def test_yoqos_input_lowers_the_loss_stays_in_the_range_and_rests_where_it_is_low_enough() -> None:
    shadows, x, y = shadows_of_six()
    rows = torch.arange(3)
    moved, confidence = crafted_chunk(shadows, rows, x, y, (0.0, 1.0))
    assert moved.min() >= 0 and moved.max() <= 1 and not torch.equal(moved, x)
    for k in range(3):
        own = [shadows.original[i](moved[k : k + 1]).softmax(1)[0, y[k]] for i in range(4) if shadows.never[i, k]]
        assert abs(confidence[k] - torch.stack(own).mean()) < 1e-12
    certain = nn.Sequential(nn.Linear(6, CLASSES)).double().requires_grad_(False)
    wrong = nn.Sequential(nn.Linear(6, CLASSES)).double().requires_grad_(False)
    for model, label in ((certain, 0), (wrong, 1)):
        model[0].weight.zero_()
        model[0].bias.copy_(20.0 * F.one_hot(torch.tensor(label), CLASSES))
    settled = replace(shadows, original=[wrong] * 4, unlearned=[certain] * 4)
    assert torch.equal(crafted_chunk(settled, rows[:1], x[:1], y[:1], None)[0], x[:1])


def test_oslos_input_fools_the_validation_models_within_its_bound() -> None:
    torch.manual_seed(0)
    source, validation = models(3, 7), models(2, 7)
    x = torch.rand(8, 6, dtype=torch.float64)
    y = torch.stack([model(x).softmax(1) for model in source]).mean(0).argmax(1)
    ids = np.arange(8)
    asked = Questions(x, y, ids, ids, (6,), (0.0, 1.0), 0)
    moved, confidence = fooling(source, validation, asked, torch.arange(8))
    seen = torch.stack([model(moved).softmax(1) for model in validation]).mean(0).gather(1, y[:, None])[:, 0]
    assert torch.allclose(confidence, seen, rtol=0, atol=1e-12)
    assert (moved - x).abs().max() <= LARGEST + 1e-12
    assert moved.min() >= 0 and moved.max() <= 1
    reached = (moved - x).abs().amax(1)
    assert (confidence < FOOLED).any()
    assert (reached[confidence >= FOOLED] > LARGEST * 0.99).all(), "who is not fooled was tried at the largest bound"


def test_oslo_validates_on_shadows_that_were_not_attacked() -> None:
    none = np.zeros((8, 3), dtype=bool)
    for count, held in ((8, 2), (4, 1), (2, 1)):
        source, validation = surrogates(Group(models(count, 0), [], none[:count], ~none[:count]))
        assert len(validation) == held and not {*map(id, source)} & {*map(id, validation)}
        assert len(source) + len(validation) == count
    source, validation = surrogates(Group(models(1, 0), [], none[:1], ~none[:1]))
    assert source == validation


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


@pytest.mark.parametrize("budget", [1, 2, 5, 8, 16])
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


def test_what_a_fold_asks_is_chosen_by_the_other_folds(monkeypatch) -> None:
    seen: list[np.ndarray] = []

    def watched(pseudo, inside, outside, head, share):
        seen.append(inside)
        return telling(pseudo, inside, outside, head, share)

    monkeypatch.setattr(budget_file, "telling", watched)
    found, _ = walks(2)
    at_budget(found, 3)
    for number, inside in enumerate(found.inside):
        for own in range(5):
            np.testing.assert_array_equal(seen[5 * number + own], inside[:, np.arange(40) % 5 != own])


@pytest.mark.parametrize("budget", [0, 18])
def test_a_budget_outside_of_what_was_asked_is_refused(budget) -> None:
    found, _ = walks(3)
    with pytest.raises(BadInput, match=f"a budget of {budget} labels per candidate; these walks hold 1 to 17"):
        at_budget(found, budget)


def test_power_grows_with_the_budget() -> None:
    found, forgotten = walks(4, points=400)
    powers = [auc(at_budget(found, budget).score, forgotten) for budget in (1, 5, 17)]
    assert powers[0] + 0.03 < powers[1] and powers[0] + 0.1 < powers[2]


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


@pytest.mark.parametrize("labels", [1, 2, 3, 6])
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


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 7, 10, 50])
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
    assert len(finding.parts) == 2 and len(finding.null) == found.outside.sum()
    other = ATTACKS["apollo_plus"]().judge(Evidence({"plus": replace(found, target=3 - target)}))
    np.testing.assert_array_equal(other.null, finding.null)
