"""HopSkipJump: true distances of linear models, signs, failures, counted questions, and the walk in slow motion."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.fft import dct

from audits.queries import hop_skip_jump, hop_skip_jump_draws
from audits.queries.hop_skip_jump import (
    ABSOLUTE,
    PLAIN,
    PREDICTED,
    RANK,
    Found,
    Schedule,
    distances,
    distances_of_models,
)
from audits.queries.hop_skip_jump_draws import Draws
from audits.queries.start_points import starts_from_pool
from audits.seeds import derive_seed
from tests.cases.families import thinned

CLASSES = 4
SEED = 5


class Linear:
    """A linear classifier: its boundaries' distances are known. With ``box`` everything lies around (0.5, …)."""

    def __init__(
        self, dimensions: int, points: int = 60, box: bool = False, dtype: torch.dtype = torch.float64
    ) -> None:
        generator = torch.Generator().manual_seed(dimensions)
        scale, middle = (0.03, 0.5) if box else (1.0, 0.0)
        self.range = (0.0, 1.0) if box else None
        self.weight = torch.randn(CLASSES, dimensions, generator=generator, dtype=dtype)
        self.middle = middle
        self.x = middle + scale * torch.randn(points, dimensions, generator=generator, dtype=dtype)
        self.pool = middle + scale * torch.randn(300, dimensions, generator=generator, dtype=dtype)
        self.y = self.labels(self.x)
        self.ids = np.arange(points) * 7
        self.starts = starts_from_pool(self.x, self.y, self.pool, self.labels(self.pool), 10)
        self.asked = 0
        self.most = 0

    def labels(self, points: torch.Tensor) -> torch.Tensor:
        return ((points - self.middle) @ self.weight.T).argmax(1)

    def counted(self, points: torch.Tensor) -> torch.Tensor:
        self.asked += len(points)
        self.most = max(self.most, len(points))
        return self.labels(points)

    def distance(self, k: int, star: int) -> float:
        """Return how far ``x[k]`` is from the nearest point on the other side of class ``star``, with its sign."""
        score = self.weight @ (self.x[k] - self.middle)
        gaps = [
            float((score[star] - score[j]) / (self.weight[star] - self.weight[j]).norm())
            for j in range(CLASSES)
            if j != star
        ]
        return min(gaps)

    def found(self, schedule: Schedule, rows: list[int] | None = None, star: torch.Tensor | None = None) -> Found:
        """Return what the batched form finds about ``rows``."""
        at = list(range(len(self.x))) if rows is None else rows
        own = None if star is None else star[at]
        return distances(
            self.counted, self.x[at], self.y[at], self.ids[at], self.starts[at], schedule, SEED, self.range, own
        )


def slow(world: Linear, k: int, star: int, starts: torch.Tensor, schedule: Schedule) -> float:
    """Return the signed distance of one point, one question after the other, as the paper and the docstring have it."""
    x, low, high = world.x[k], *(world.range or (-math.inf, math.inf))
    key = np.array([derive_seed(SEED, "hop_skip_jump"), world.ids[k]], dtype=np.uint64)

    def is_star(point: torch.Tensor) -> bool:
        return int(world.labels(point[None])) == star

    inside = is_star(x)

    def across(point: torch.Tensor) -> bool:
        return is_star(point) != inside

    def bisect(end: torch.Tensor) -> tuple[torch.Tensor, float]:
        near, far = 0.0, 1.0
        for _ in range(schedule.halvings):
            half = (near + far) / 2
            if across(x + half * (end - x)):
                far = half
            else:
                near = half
        return x + far * (end - x), (far - near) * float((end - x).norm())

    def drawn(restart: int, t: int) -> list[torch.Tensor]:
        random = np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, restart, t], dtype=np.uint64)))
        draws = [random.standard_normal(len(x), dtype=np.float32) for _ in range(schedule.directions_of(t))]
        return [torch.from_numpy(draw).double() for draw in draws]

    def at_right_angles(restart: int, t: int) -> list[torch.Tensor]:
        first = 1 if t <= schedule.rounds else schedule.rounds + 1
        before = sum(math.floor(schedule.directions * math.sqrt(earlier)) for earlier in range(first, t))
        wanted, found = range(before, before + schedule.directions_of(t)), []
        cosines = torch.from_numpy(dct(np.eye(len(x)), norm="ortho", axis=0))  # C: its rows are waves
        for place in wanted:
            counter = np.array([0, 1 + place // len(x), restart, 0], dtype=np.uint64)
            coins = np.random.Generator(np.random.Philox(key=key, counter=counter))
            signs = torch.from_numpy(coins.integers(0, 2, (2, len(x)), dtype=np.int8)).double() * 2 - 1
            block = cosines @ torch.diag(signs[0]) @ cosines.T @ torch.diag(signs[1])
            found.append(block[place % len(x)])
        return found

    def a_round(z: torch.Tensor, gap: float, restart: int, t: int) -> tuple[torch.Tensor, float]:
        length = float((z - x).norm())
        delta = max(0.1 * (high - low) if t == 1 and world.range else length / len(x), gap)
        u, phi = [], []
        for draw in (at_right_angles if schedule.orthogonal else drawn)(restart, t):
            asked = (z + delta * draw / draw.norm()).clamp(low, high)
            u.append((asked - z) / delta)
            phi.append(1.0 if across(asked) else -1.0)
        mean = sum(phi) / len(phi)
        v = sum((p if abs(mean) == 1 else p - mean) * d for p, d in zip(phi, u, strict=True))
        v /= v.norm()
        epsilon = length / math.sqrt(t)
        for _ in range(schedule.tries):
            if across((z + epsilon * v).clamp(low, high)):
                break
            epsilon /= 2
        else:
            epsilon = 0.0
        moved, moved_gap = bisect((z + epsilon * v).clamp(low, high))
        return (moved, moved_gap) if float((moved - x).norm()) < length else (z, gap)

    usable = sorted((start for start in starts if across(start)), key=lambda start: float((start - x).norm()))
    if not usable:
        return math.nan
    ends = []
    for restart in range(schedule.restarts):
        z, gap = bisect(usable[restart % len(usable)])
        for t in range(1, schedule.rounds + 1):
            z, gap = a_round(z, gap, restart, t)
        ends.append((z, gap))
    z, gap = min(ends, key=lambda end: float((end[0] - x).norm()))
    for t in range(schedule.rounds + 1, schedule.rounds + schedule.further + 1):
        z, gap = a_round(z, gap, schedule.restarts, t)
    return float((z - x).norm()) if inside else -float((z - x).norm())


@pytest.mark.parametrize(
    ("box", "orthogonal"),
    thinned([(False, False), (False, True), (True, False), (True, True)], [(False, False), (True, True)]),
)
def test_the_batched_form_is_the_slow_form(box, orthogonal, monkeypatch) -> None:
    world = Linear(30, points=5, box=box)
    monkeypatch.setattr(hop_skip_jump, "NUMBERS_AT_ONCE", 35 * 30)  # several parts a round, the last one smaller
    schedule = Schedule(rounds=2, restarts=2, directions=20, halvings=10, tries=4, further=2, orthogonal=orthogonal)
    star = torch.tensor([int(world.y[0]), int(world.y[1]), *((world.y[2:] + 1) % CLASSES).tolist()])
    found = world.found(schedule, star=star)
    expected = [slow(world, k, int(star[k]), world.starts[k], schedule) for k in range(5)]
    assert found.distance.tolist() == pytest.approx(expected, rel=1e-7)
    assert [value > 0 for value in expected] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("dimensions", "box"),
    thinned(((size, box) for size in (20, 50, 200, 784) for box in (False, True)), [(200, True)]),
)
def test_the_distance_to_the_boundary_of_a_linear_model_is_found(dimensions, box) -> None:
    count = 20 if dimensions < 784 else 60  # one in ten of these ends at another class
    world = Linear(dimensions, points=count, box=box)
    ratio = world.found(ABSOLUTE).distance / torch.tensor([world.distance(k, int(world.y[k])) for k in range(count)])
    assert ABSOLUTE.queries <= 4000
    assert (ratio >= 1 - 1e-9).all(), "no point nearer than the boundary lies across it"
    assert ratio.median() <= 1.1
    assert ratio.quantile(0.9) <= 1.15


def test_points_labelled_otherwise_get_minus_the_distance_to_the_class() -> None:
    world = Linear(20)
    star = (world.y + 1) % CLASSES
    star[0] = world.y[0]
    found = world.found(RANK, star=star)
    assert not found.failed.any()
    assert found.distance[0] > 0 > found.distance[1:].max()
    reached = world.labels(found.point)
    assert reached[0] != star[0] and (reached[1:] == star[1:]).all()
    assert torch.allclose((found.point - world.x).norm(dim=1), found.distance.abs())
    # the class's region lies behind each of its boundaries, so none of them is farther than the nearest point of it
    assert all(-float(found.distance[k]) >= -world.distance(k, int(star[k])) - 1e-9 for k in range(1, 60))


def test_the_models_own_class_is_taken_where_it_is_asked_for() -> None:
    world = Linear(20)
    own = world.found(RANK).distance
    world.y = (world.y + 1) % CLASSES
    assert torch.equal(world.found(RANK, star=torch.full_like(world.y, PREDICTED)).distance, own)


def test_without_a_start_on_the_other_side_the_distance_is_nan() -> None:
    world = Linear(20, points=6)
    world.starts[2] = world.x[2]
    found = world.found(RANK)
    assert found.failed.tolist() == [False, False, True, False, False, False]
    assert found.distance.isnan().tolist() == found.failed.tolist()
    assert found.point.isnan().any(1).tolist() == found.failed.tolist()


@pytest.mark.parametrize(
    ("schedule", "queries"),
    [
        (RANK, 316),
        (Schedule(rounds=1, restarts=1), 151),
        pytest.param(PLAIN, 3734, marks=pytest.mark.long),
        (ABSOLUTE, 3899),
        (Schedule(rounds=0, restarts=2, halvings=5, starts=3), 14),
        (Schedule(rounds=1, restarts=2, directions=7, halvings=9, tries=3, starts=4, further=1), 5 + 2 * 28 + 21),
        (
            Schedule(rounds=3, restarts=2, directions=7, halvings=9, tries=3, starts=4),
            1 + 4 + 2 * (36 + 7 + 9 + 12 + 9),
        ),
    ],
)
def test_every_point_is_asked_as_often_as_the_schedule_says(schedule, queries) -> None:
    world = Linear(20, points=3)
    world.starts = world.starts[:, : schedule.starts]
    world.starts[0] = world.x[0]  # also one whose search fails
    world.found(schedule)
    assert world.asked == 3 * schedule.queries == 3 * queries


def test_directions_are_asked_in_parts(monkeypatch) -> None:
    assert 40 * 20 * ABSOLUTE.directions_of(13) > hop_skip_jump.NUMBERS_AT_ONCE
    monkeypatch.setattr(hop_skip_jump, "NUMBERS_AT_ONCE", hop_skip_jump.NUMBERS_AT_ONCE // 8)
    world = Linear(20, points=5)
    world.found(ABSOLUTE)
    assert world.most * 20 <= hop_skip_jump.NUMBERS_AT_ONCE < 5 * 20 * ABSOLUTE.directions_of(13)
    assert Schedule(rounds=1, restarts=1, directions=7000).directions_of(3) == 10_000


@pytest.mark.parametrize("box", thinned((False, True), (True,)))
def test_batch_mates_change_rounding_only(box, monkeypatch) -> None:
    world = Linear(30, points=60, box=box)
    schedule = Schedule(rounds=3, restarts=2, directions=40)
    whole = world.found(schedule)
    mixed = torch.randperm(60, generator=torch.Generator().manual_seed(0)).tolist()
    monkeypatch.setattr(hop_skip_jump, "NUMBERS_AT_ONCE", 300 * 30)
    for rows in (mixed, mixed[:17], mixed[17:40]):
        part = world.found(schedule, rows)
        equal = (part.point - whole.point[rows]).abs().amax(1) <= 1e-6
        assert equal.double().mean() >= 0.99


# ------------------------------------------------------------------------------------------- many models at once


class Turned:
    """The linear model of a world with other weights, which counts the points it is asked about."""

    def __init__(self, world: Linear, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(world.weight.shape, generator=generator, dtype=world.weight.dtype)
        self.weight, self.middle, self.asked = world.weight + 0.3 * noise, world.middle, 0

    def __call__(self, points: torch.Tensor) -> torch.Tensor:
        self.asked += len(points)
        return ((points - self.middle) @ self.weight.T).argmax(1)


@pytest.mark.parametrize(
    ("box", "noise"), thinned([(False, False), (True, False), (True, True)], [(False, False), (True, True)])
)
def test_models_that_share_their_draws_get_what_each_gets_alone(box, noise, monkeypatch) -> None:
    world = Linear(30, points=40, box=box)
    models = [Turned(world, seed) for seed in range(4)]
    star = torch.where(torch.arange(40) % 3 == 0, PREDICTED, (world.y + torch.arange(40) % 2) % CLASSES)
    schedule = Schedule(rounds=2, restarts=2, directions=20, halvings=9, tries=4, further=1)
    given = (world.x, world.y, world.ids, None if noise else world.starts, schedule, SEED, world.range, star)
    alone = [distances(model, *given) for model in models]
    expected = torch.stack([found.distance for found in alone])
    assert bool((expected[0] != expected[1]).all()), "the models differ"
    drawn = hop_skip_jump_draws.unit_vectors
    rows = []
    monkeypatch.setattr(hop_skip_jump_draws, "unit_vectors", lambda *asked: rows.append(asked[1]) or drawn(*asked))
    for model in models:
        model.asked = 0
    together = distances_of_models(models, *given)
    assert torch.allclose(together, expected, rtol=0, atol=1e-9, equal_nan=True)
    assert [model.asked for model in models] == [40 * schedule.queries] * 4
    assert sum(rows) == schedule.all_directions == 2 * (20 + 28) + 34, "directions are drawn once, not once a model"


def test_parts_of_points_and_rounds_that_are_drawn_again_change_rounding_only(monkeypatch) -> None:
    world = Linear(30, points=40, box=True)
    models = [Turned(world, seed) for seed in range(3)]
    given = (world.x, world.y, world.ids, world.starts, RANK, SEED, world.range)
    whole = distances_of_models(models, *given)
    monkeypatch.setattr(hop_skip_jump, "FEWEST_POINTS", 17)
    monkeypatch.setattr(hop_skip_jump, "SHARED_BYTES", 17 * 120 * 30 * 8)  # keeps round 1 (100), not round 2 (141)
    parts = distances_of_models(models, *given)
    assert ((parts - whole).abs() <= 1e-6).double().mean() >= 0.99
    assert [model.asked for model in models] == [2 * 40 * RANK.queries] * 3


def test_directions_are_kept_as_far_as_there_is_room() -> None:
    like = torch.zeros(3, 10, dtype=torch.float64)
    draws = Draws(range(3), SEED, like, rows_at_once=12, room=3 * 10 * 8 * 25)
    first, second = ([list(draws.directions(0, t, 20)) for _ in range(2)] for t in (1, 2))
    assert [part.shape for part in first[0]] == [(3, 4, 10)] * 5
    assert all(one is other for one, other in zip(*first, strict=True)), "round 1 is kept"
    assert all(one is not other for one, other in zip(*second, strict=True)), "there is no room for round 2"
    for once, again in (first, second):
        assert torch.equal(torch.cat(once), torch.cat(again))
    assert not torch.equal(torch.cat(first[0]), torch.cat(second[0]))
    assert torch.allclose(torch.cat(first[0]).norm(dim=-1), torch.ones((), dtype=torch.float64), atol=1e-6)


@pytest.mark.parametrize("dimensions", [1, 2, 30, 49])
def test_directions_at_right_angles_go_on_from_round_to_round_block_by_block(dimensions) -> None:
    like = torch.zeros(3, dimensions, dtype=torch.float64)
    rounds = [4, 25, 60]
    whole, parts = (
        [torch.cat(list(draws.directions(1, t, count, before=sum(rounds[:t]))), 1) for t, count in enumerate(rounds)]
        for draws in (Draws(range(3), SEED, like, at_once, orthogonal=True) for at_once in (10_000, 21))
    )
    every = torch.cat(whole, 1)
    assert torch.allclose(torch.cat(parts, 1), every, rtol=0, atol=1e-6)
    for first in range(0, sum(rounds), dimensions):
        block = every[:, first : first + dimensions]
        assert torch.allclose(block @ block.mT, torch.eye(block.shape[1], dtype=torch.float64), atol=1e-5)
    if dimensions > 2:
        assert len({tuple(row) for row in every[:, :dimensions].sum(1).tolist()}) == 3, (
            "points have blocks of their own"
        )
        assert not torch.allclose(every[:, :20], every[:, dimensions : dimensions + 20]), "and blocks differ"


def test_right_angles_bring_the_estimate_of_a_normal_nearer() -> None:
    """cos² of the angle to the normal of a plane in R^D: of each pair of directions at random angles 2/π/D overlaps."""
    dimensions, points = 60, 400
    normal = torch.randn(points, dimensions, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    normal /= normal.norm(dim=1, keepdim=True)
    for count in (40, 150):
        blocks = [min(dimensions, count - first) for first in range(0, count, dimensions)]
        for orthogonal, alike in ((False, count), (True, sum(size**2 for size in blocks))):
            overlap = 2 / math.pi / dimensions
            expected = overlap * count**2 / (count + (count**2 - alike) * overlap)
            draws = Draws(range(points), SEED, normal, 10**6, orthogonal=orthogonal)
            asked = torch.cat(list(draws.directions(0, 1, count)), 1)
            guess = (asked * torch.where((asked * normal[:, None]).sum(-1) > 0, 1.0, -1.0)[..., None]).sum(1)
            cosine = (guess * normal).sum(1) / guess.norm(dim=1)
            assert float((cosine**2).mean()) == pytest.approx(expected, rel=0.06)


def test_draws_follow_the_id_and_the_seed() -> None:
    world = Linear(40, points=4)
    first = world.found(RANK).distance
    world.ids = world.ids + 1
    assert (world.found(RANK).distance != first).all()
    again = distances(world.labels, world.x, world.y, world.ids - 1, world.starts, RANK, SEED, None).distance
    other = distances(world.labels, world.x, world.y, world.ids - 1, world.starts, RANK, SEED + 1, None).distance
    assert torch.equal(again, first) and (other != first).all()


def test_noise_makes_up_for_missing_starts() -> None:
    world = Linear(40, points=10, box=True)
    found = distances(world.labels, world.x, world.y, world.ids, None, ABSOLUTE, SEED, world.range)
    assert not found.failed.any()
    assert ((found.point >= 0) & (found.point <= 1)).all()
    true = torch.tensor([world.distance(k, int(world.y[k])) for k in range(10)])
    assert (found.distance / true).min() >= 1 - 1e-9 and (found.distance / true).median() < 1.3


def test_more_questions_bring_the_boundary_nearer() -> None:
    world = Linear(60, points=12, dtype=torch.float32)
    means = [
        float(world.found(schedule).distance.mean())
        for schedule in (Schedule(0, 1), Schedule(1, 1), RANK, Schedule(6, 1), PLAIN)
    ]
    assert means == sorted(means, reverse=True)
