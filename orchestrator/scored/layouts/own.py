"""Scores of our own runs: ``scores.parquet`` of any audit, and of ``orch score`` itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from audits.errors import BadInput
from audits.statistics.judged import Judged
from orchestrator.kinds import KINDS, kind_named
from orchestrator.report.judged import DECISION, judged_rows, places
from orchestrator.scored.attacks import Attack
from orchestrator.scored.columns import column_of
from orchestrator.scored.names import Names, encoded, text_of_names

COLUMNS = ("setting", "attack", "target", "member", "score")
KIND, SCORES = "score", "scores.parquet"
UNIT = "unit"
"""A column of ``orch score`` where targets hang together: which of them do."""
OURS = "held_out_"
"""Columns ``held_out_F`` of ``orch score``: decisions at rate F whose thresholds it set itself, by other points."""
NAMES = {"target", "point_id"}


def kind_of(table: pa.Table) -> str:
    """Return the kind of audit that wrote a table, "" for none."""
    columns = set(table.column_names)
    if (
        columns <= {*COLUMNS, "point_id", UNIT} | {name for name in columns if name.startswith((DECISION, OURS))}
        and set(COLUMNS) <= columns
    ):
        return KIND
    for name in KINDS:
        read = kind_named(name).judged
        if read is not None and read.columns <= columns:
            return name
    return ""


def judged_of(table: pa.Table, kind: str) -> list[Judged]:
    """Return the attacks of a scores table of an audit of ``kind``, of ``orch score`` itself too.

    The latter's targets and points are text, also in tables that hold whole numbers there, and what it decided itself
    is among the decisions.
    """
    if kind == KIND:
        for name in NAMES & set(table.column_names):
            place = table.schema.get_field_index(name)
            table = table.set_column(
                place, name, text_of_names(column_of(table, name, SCORES), f"{SCORES}: column {name!r}")
            )
        member = np.asarray(table["member"].to_numpy(zero_copy_only=False), dtype=bool)
        ours = {name.removeprefix(OURS): name for name in table.column_names if name.startswith(OURS)}
        made = [each.decisions for each in judged_rows(table, member, decisions=ours)]
        return [
            replace(each, decisions={**each.decisions, **decided}, cluster=own)
            for each, decided, own in zip(judged_rows(table, member), made, units_of(table), strict=True)
        ]
    read = kind_named(kind).judged
    if read is None:
        raise BadInput(f"scores of audits of kind {kind} cannot be judged again or compared")
    return read.read(table)


def units_of(table: pa.Table) -> list[NDArray[Any] | None]:
    """Return which targets hang together, of each attack of a table of ``orch score`` in order; None where none do."""
    found = []
    for _, rows in places(table, ("setting", "attack")):
        column = table[UNIT].take(rows) if UNIT in table.column_names else None
        found.append(None if column is None or column.null_count else column.to_numpy())
    return found


def attacks(table: pa.Table, kind: str) -> list[Attack]:
    """Return the attacks with the names of their targets and points, without what ``orch score`` decided itself."""
    given = [name for name in table.column_names if kind != KIND or not name.startswith(OURS)]
    return [named(each) for each in judged_of(table.select(given), kind)]


def named(judged: Judged) -> Attack:
    """Return an attack with names of targets and points as text, and with its clusters if any has several targets."""
    targets, points = names_of(judged.target), None if judged.point is None else names_of(judged.point)
    together = np.unique(judged.unit).size < np.unique(judged.target).size
    numbered = replace(
        judged,
        target=targets.codes,
        point=None if points is None else points.codes,
        cluster=judged.cluster if together else None,
    )
    return Attack(numbered, targets, points)


def names_of(values: NDArray[Any]) -> Names:
    """Return names as text."""
    return encoded(text_of_names(pa.array(values), "a column of names"))
