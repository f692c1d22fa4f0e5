"""Fingerprints of kinds whose scores ``orch compare`` does not read, and of those that name no points."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from orchestrator.engine.run.fingerprints import queried_in_groups, questions


def table(points: list[int], groups: list[str]) -> pa.Table:
    return pa.table(
        {"setting": ["base"] * len(points), "point_id": points, "group": groups, "loss": np.zeros(len(points))}
    )


def test_a_table_in_groups_has_fingerprints_of_points_and_members() -> None:
    base = questions(queried_in_groups(table([3, 5, 8], ["members", "members", "controls"])))
    assert base == questions(queried_in_groups(table([8, 3, 5], ["controls", "members", "members"])))
    other = questions(queried_in_groups(table([3, 5, 8], ["members", "controls", "members"])))
    assert other["points"] == base["points"] and other["members"] != base["members"]
    assert base["points"].keys() == base["members"].keys() == {"base"}


def test_a_table_without_points_has_none() -> None:
    assert questions(queried_in_groups(pa.table({"setting": ["base"], "score": [0.0]}))) == {
        "points": {},
        "members": {},
    }
