"""Tables of recorded answers are refused before any work wherever the audit would refuse them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audits.data.ids import Points
from audits.errors import BadInput
from audits.queries.served.reading import Reading
from audits.targets.recorded import answers_in
from tests.cases.families import as_one

NAMES = ("cat", "dog", "owl")
LABELS = {"id": [0, 4], "label": [2, 0]}
SCORES = {"id": [0, 4], "0": [0.2, 1.0], "1": [0.3, 0.0], "2": [0.5, 0.0]}


def check(folder: Path, columns: dict[str, Any], gives: Any) -> None:
    pq.write_table(pa.table(columns), folder / "answers.parquet")
    answers_in(str(folder / "answers.parquet"), Points(5), Reading(3, gives), NAMES)


@as_one(
    "columns, gives, named",
    [
        ({"id": [0, 1], "score": [0.2, 0.3]}, "probabilities", "score"),
        ({**SCORES, "id": [0, 5]}, "probabilities", "5"),
        ({**SCORES, "id": [4, 4]}, "probabilities", "4"),
        ({**SCORES, "0": [0.9, 1.0]}, "probabilities", "add up to 1.7"),
        ({**SCORES, "2": [float("nan"), 0.0]}, "logits", "NaN"),
        ({**LABELS, "label": [3, 0]}, "labels", "3"),
        ({**LABELS, "label": ["fish", "cat"]}, "labels", "fish"),
        ({**LABELS, "label": [0.5, 1.0]}, "labels", "0.5"),
    ],
)
def test_what_the_audit_would_refuse_is_refused(
    columns: dict[str, Any], gives: str, named: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=named):
        check(tmp_path, columns, gives)


def test_answers_that_can_be_read_pass(tmp_path: Path) -> None:
    check(tmp_path, LABELS, "labels")
    check(tmp_path, SCORES, "probabilities")
    check(tmp_path, {"id": SCORES["id"], **{name: SCORES[str(place)] for place, name in enumerate(NAMES)}}, "logits")
