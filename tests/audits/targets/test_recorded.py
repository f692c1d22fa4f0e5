"""Recorded answers: which points and classes a table means, whatever the types of its columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audits.data.ids import Points
from audits.errors import BadInput
from audits.queries.served.reading import Reading
from audits.targets.recorded import answers_in, check_columns
from tests.cases.families import as_one

NAMES = ("cat", "dog", "eel")
POINTS = Points(6, lambda: [f"{place}.png" for place in "abcdef"])
LABELS = Reading(3)


def answers(place: Path, columns: dict[str, Any], reading: Reading = LABELS, names: tuple[str, ...] = NAMES) -> Any:
    """Return ids and what is read of the answers of a table of ``columns``."""
    file = place / "answers.parquet"
    pq.write_table(pa.table(columns), file)
    check_columns(str(file), reading)
    ids, found = answers_in(str(file), POINTS, reading, names)
    read = reading.labels(found) if reading.gives == "labels" else reading.scores(found)
    return ids.tolist(), read.tolist()


@as_one("ids", [[4, 0, 2], ["4", "0", "2"], [4.0, 0.0, 2.0], ["e.png", "./a.png", "2"]])
@as_one("labels", [
        [2, 0, 1], [2.0, 0.0, 1.0], ["2", "0", "1"], ["2.0", "0.0", "1.0"], ["eel", "cat", "dog"],
        pa.array(["eel", "cat", "dog"]).dictionary_encode(), pa.array([2, 0, 1], pa.uint8()),
    ])  # fmt: skip
def test_points_and_labels_are_the_same_in_every_type(tmp_path: Path, ids: list[Any], labels: Any) -> None:
    assert answers(tmp_path, {"id": ids, "label": labels}) == ([4, 0, 2], [2, 0, 1])


def test_names_of_the_plan_come_before_those_of_the_data(tmp_path: Path) -> None:
    reading = Reading(3, class_names=["1", "2", "0"])
    for labels in ([1, 2, 0], [1.0, 2.0, 0.0], ["1", "2", "0"]):
        assert answers(tmp_path, {"id": [0, 1, 2], "label": labels}, reading)[1] == [0, 1, 2]


@as_one(
    "columns, names, named",
    [
        ({"id": [0, 1], "label": ["cat", "dgo"]}, NAMES, "did you mean 'dog'"),
        ({"id": [0, 1], "label": [0, 3]}, NAMES, "'3'.*0 to 2"),
        ({"id": [0, 1], "label": [0.0, 1.5]}, NAMES, "'1.5'"),
        ({"id": [0, 1], "label": [0, None]}, NAMES, "''"),
        ({"id": [0, 1], "label": [True, False]}, NAMES, "'True'"),
        ({"id": [0, 1], "label": ["01", "1"]}, NAMES, "'01'"),
        ({"id": [0, 1], "label": [1, 2]}, ("1", "2", "3"), "may be 0 or 1"),
        ({"id": [0, 1], "label": ["cat", "dog"]}, (*NAMES, "fox"), "'cat'"),
        ({"id": [0, None], "label": [0, 1]}, NAMES, "1 of 2 rows without an id"),
        ({"id": [0, 6], "label": [0, 1]}, NAMES, "id 6.*outside"),
        ({"id": ["a.png", "0"], "label": [0, 1]}, NAMES, "id 0 twice"),
        ({"id": ["a.png", "x.png"], "label": [0, 1]}, NAMES, "'x.png'"),
        ({"id": [True, False], "label": [0, 1]}, NAMES, "'True'"),
        ({"id": [0, 1], "score": [0.1, 0.2]}, NAMES, "no column label"),
    ],
)
def test_what_may_mean_another_class_or_none_is_refused(
    tmp_path: Path, columns: dict[str, Any], names: tuple[str, ...], named: str
) -> None:
    with pytest.raises(BadInput, match=named) as refused:
        answers(tmp_path, columns, names=names)
    assert "\n" not in str(refused.value)


P = [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]
SCORES = Reading(3, "probabilities")


def columns_of(names: list[str]) -> dict[str, Any]:
    return {"id": ["1", "0"], **{name: [row[place % 3] for row in P] for place, name in enumerate(names)}}


def test_scores_are_by_index_or_by_name_and_never_guessed_where_both_fit(tmp_path: Path) -> None:
    for names, data in ((["0", "1", "2"], NAMES), (list(NAMES), NAMES), (["0", "1", "2"], ("0", "1", "2"))):
        assert answers(tmp_path, columns_of(names), SCORES, data) == ([1, 0], P)
    with pytest.raises(BadInput, match="by its index and by its name"):
        answers(tmp_path, columns_of(["0", "1", "2", *NAMES]), SCORES)
    turned = ("1", "2", "0")
    with pytest.raises(BadInput, match=r"in another order; say .*class_names"):
        answers(tmp_path, columns_of(["0", "1", "2"]), SCORES, turned)
    said = replace(SCORES, class_names=turned)
    assert answers(tmp_path, columns_of(["0", "1", "2"]), said, turned) == ([1, 0], [[*row[1:], row[0]] for row in P])


@as_one(
    "columns, named",
    [
        ({"id": [0, 1], "score": [0.5, 0.5]}, "no column 0"),
        ({"id": [0], "0": ["0.5"], "1": [0.5], "2": [0.0]}, "'0.5', as a score"),
        ({"id": [0], "0": [0.5], "1": [None], "2": [0.5]}, "None, as a score"),
        ({"id": [0], "0": [5.0], "1": [1.0], "2": [2.0]}, "probability 5"),
    ],
)
def test_tables_without_scores_are_refused(tmp_path: Path, columns: dict[str, Any], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        answers(tmp_path, columns, SCORES)
