"""Scores of our own runs: ``scores.parquet`` of any audit, and of ``orch score`` itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from audits.errors import BadInput
from audits.statistics.judged import Judged
from orchestrator.kinds import KINDS, kind_named
from orchestrator.report.judged import DECISION, judged_rows
from orchestrator.scored.attacks import Attack
from orchestrator.scored.columns import Names

COLUMNS = ("setting", "attack", "target", "member", "score")
KIND = "score"


def kind_of(table: pa.Table) -> str:
    """Return the kind of audit that wrote a table, "" for none."""
    columns = set(table.column_names)
    if (
        columns <= {*COLUMNS, "point_id"} | {name for name in columns if name.startswith(DECISION)}
        and set(COLUMNS) <= columns
    ):
        return KIND
    for name in KINDS:
        read = kind_named(name).judged
        if read is not None and read.columns <= columns:
            return name
    return ""


def judged_of(table: pa.Table, kind: str) -> list[Judged]:
    """Return the attacks of a scores table of an audit of ``kind``, of ``orch score`` itself too."""
    if kind == KIND:
        return judged_rows(table, np.asarray(table["member"].to_numpy(zero_copy_only=False), dtype=bool))
    read = kind_named(kind).judged
    if read is None:
        raise BadInput(f"scores of audits of kind {kind} cannot be judged again or compared")
    return read.read(table)


def attacks(table: pa.Table, kind: str) -> list[Attack]:
    """Return the attacks with the names of their targets and points."""
    return [named(each) for each in judged_of(table, kind)]


def named(judged: Judged) -> Attack:
    """Return an attack with its own names; what stands in the table is what is written again."""
    targets, points = names_of(judged.target), None if judged.point is None else names_of(judged.point)
    numbered = replace(judged, target=targets.codes, point=None if points is None else points.codes)
    return Attack(numbered, targets, points)


def names_of(values: np.ndarray) -> Names:
    """Return names as they are."""
    if values.dtype.kind in "iu":
        return Names(values.astype(np.int64))
    words, codes = np.unique(values.astype(str), return_inverse=True)
    return Names(codes, tuple(map(str, words)))
