"""Boundary distance: walks to the boundary within a budget of labels, and what a distance is weighed against."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from audits.apollo.attacks import ATTACKS
from audits.apollo.attacks.boundary_distance import bounded
from audits.apollo.evidence import Evidence, Questions
from audits.apollo.evidence.boundary import Distances, nearest
from audits.errors import BadInput
from audits.queries.small_budgets import TIERS, SmallSchedule, schedule_within, signed_distances
from tests.audits.apollo.evidence.small_networks import CLASSES
from tests.cases.families import thinned
from tests.cases.synthetic_evidence import auc


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

    def measured(self, schedule: SmallSchedule, rows: slice = slice(None)) -> torch.Tensor:
        """Return the signed distances that a walk finds."""
        count = schedule.restarts * schedule.starts
        generators = [torch.Generator().manual_seed(k) for k in range(len(self.x))[rows]]
        self.asked = torch.zeros(len(generators), dtype=torch.int64)
        away, home = self.starts(count, False)[rows], self.starts(count, True)[rows]
        return signed_distances(self.counted, self.x[rows], self.y[rows], away, home, generators, schedule, None)


@pytest.mark.parametrize(
    ("dimensions", "budget", "median", "tail"),
    thinned([(40, 1000, 1.12, 1.25), (40, 4000, 1.05, 1.15), (196, 4000, 1.15, 1.3)], [(40, 1000, 1.12, 1.25)]),
)
def test_a_walk_finds_the_distance_to_the_boundary_of_a_linear_model(dimensions, budget, median, tail) -> None:
    count = 60 if dimensions < 100 else 20
    world = Linear(dimensions, points=count)
    ratio = world.measured(schedule_within(budget)) / torch.tensor([world.distance(k) for k in range(count)])
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
