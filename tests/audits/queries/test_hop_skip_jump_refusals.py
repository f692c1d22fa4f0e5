"""Where walks to the boundary begin, and what HopSkipJump refuses."""

from __future__ import annotations

import pytest
import torch

from audits.errors import BadInput
from audits.queries import start_points
from audits.queries.hop_skip_jump import RANK, Schedule, distances, distances_of_models
from audits.queries.start_points import starts_from_pool
from tests.cases.families import as_one


def test_start_points_are_near_and_of_many_classes() -> None:
    pool, labels = torch.tensor([[1.0], [2.0], [3.0], [-4.0], [0.0], [9.0]]), torch.tensor([1, 1, 2, 0, 0, 0])
    x, y = torch.tensor([[0.0]]), torch.tensor([0])
    assert starts_from_pool(x, y, pool, labels, 4, own=1).flatten().tolist() == [1, 3, 2, -4]
    assert starts_from_pool(x, y, pool, labels, 4).flatten().tolist() == [1, 3, -4, 9]
    assert starts_from_pool(x, y, pool, labels, 1).flatten().tolist() == [1]
    assert starts_from_pool(x, torch.tensor([7]), pool, labels, 6).flatten().tolist() == [1, 3, -4, 2, 9, 1]
    with pytest.raises(BadInput, match="pool of start points has 0 points, none unlike x"):
        starts_from_pool(x, y, pool[:0], labels[:0], 2)
    with pytest.raises(BadInput, match="pool of start points has 1 points, none unlike x"):
        starts_from_pool(x, y, pool[4:5], labels[4:5], 2)


def test_start_points_are_those_of_distances_measured_one_by_one(monkeypatch) -> None:
    generator = torch.Generator().manual_seed(0)
    x, pool = (torch.rand(count, 6, generator=generator) for count in (5, 40))
    x[0] = pool[3]
    y, known = torch.arange(5) % 3, torch.arange(40) % 3
    expected = []
    for point, label in zip(x, y, strict=True):
        far = [float((one.double() - point.double()).norm()) for one in pool]
        near = sorted((i for i in range(40) if far[i] > 0), key=lambda i: far[i])
        of = [[i for i in near if known[i] == other] for other in range(3)]
        away = [
            sorted((of[other][rank] for other in range(3) if other != label), key=lambda i: far[i]) for rank in (0, 1)
        ]
        expected.append(pool[torch.tensor([*away[0], *away[1], *of[int(label)][:2]])])
    monkeypatch.setattr(start_points, "NUMBERS_AT_ONCE", 50)  # the pool in several parts, the last one smaller
    assert torch.equal(starts_from_pool(x, y, pool, known, 6), torch.stack(expected))


@as_one(
    "change, told",
    [
        ({"x": torch.zeros(2)}, "x has shape"),
        ({"ids": [1]}, "with 2 classes and 1 ids"),
        ({"ids": [0, -1]}, "ids has -1; give whole numbers from 0"),
        ({"starts": torch.zeros(2, 10, 5)}, r"starts has shape \(2, 10, 5\); allowed for these points: \(2, S, 3\)"),
        ({"starts": None}, "0 start points a point are given, the schedule asks 10"),
        ({"value_range": (1.0, 2.0)}, r"x goes from 0.0 to 0.0; allowed: 1.0 to 2.0"),
    ],
)
def test_what_cannot_be_searched_is_refused(change, told) -> None:
    given = {"x": torch.zeros(2, 3), "ids": [0, 1], "starts": torch.zeros(2, 10, 3), "value_range": None, **change}
    asked = (given["x"], torch.zeros(2), given["ids"], given["starts"], RANK, 0, given["value_range"])
    with pytest.raises(BadInput, match=told):
        distances(lambda points: torch.zeros(len(points)), *asked)
    with pytest.raises(BadInput, match=told):
        distances_of_models([lambda points: torch.zeros(len(points))], *asked)


@as_one("field, value", [("rounds", -1), ("restarts", 0), ("halvings", 19), ("tries", 0), ("further", -1)])
def test_a_schedule_that_cannot_be_kept_is_refused(field, value) -> None:
    with pytest.raises(BadInput, match=f"{field} is {value}"):
        Schedule(**{"rounds": 1, "restarts": 1, field: value})
