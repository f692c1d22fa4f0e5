"""Where walks to the boundary begin, and what HopSkipJump refuses."""

from __future__ import annotations

import pytest
import torch

from audits.errors import BadInput
from audits.membership.hop_skip_jump import RANK, Schedule, distances
from audits.membership.start_points import starts_from_pool


def test_start_points_are_near_and_of_many_classes() -> None:
    pool, labels = torch.tensor([[1.0], [2.0], [3.0], [-4.0], [0.0], [9.0]]), torch.tensor([1, 1, 2, 0, 0, 0])
    x, y = torch.tensor([[0.0]]), torch.tensor([0])
    assert starts_from_pool(x, y, pool, labels, 4, own=1).flatten().tolist() == [1, 3, 2, -4]
    assert starts_from_pool(x, y, pool, labels, 4).flatten().tolist() == [1, 3, -4, 9]
    assert starts_from_pool(x, y, pool, labels, 1).flatten().tolist() == [1]
    assert starts_from_pool(x, torch.tensor([7]), pool, labels, 6).flatten().tolist() == [1, 3, -4, 2, 9, 1]
    with pytest.raises(BadInput, match="pool of start points has 1 points, none unlike x"):
        starts_from_pool(x, y, pool[4:5], labels[4:5], 2)


@pytest.mark.parametrize(
    ("change", "told"),
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
    with pytest.raises(BadInput, match=told):
        distances(
            lambda points: torch.zeros(len(points)),
            given["x"],
            torch.zeros(2),
            given["ids"],
            given["starts"],
            RANK,
            0,
            given["value_range"],
        )


@pytest.mark.parametrize(
    ("field", "value"), [("rounds", -1), ("restarts", 0), ("halvings", 19), ("tries", 0), ("further", -1)]
)
def test_a_schedule_that_cannot_be_kept_is_refused(field, value) -> None:
    with pytest.raises(BadInput, match=f"{field} is {value}"):
        Schedule(**{"rounds": 1, "restarts": 1, field: value})
