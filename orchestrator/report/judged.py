"""Scores tables that have one row for each attack, target and point, as what each attack said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools
from audits.statistics.judged import Judged

if TYPE_CHECKING:
    import pyarrow as pa

DECISION = "decision_"
"""Columns ``decision_F``: probability of "member" at promised false-positive rate F."""


def judged_rows(
    table: pa.Table,
    member: Bools,
    *,
    attack: Sequence[str] = ("attack",),
    target: str = "target",
    point: str = "point_id",
    score: str = "score",
    decisions: Mapping[str, str] | None = None,
) -> list[Judged]:
    """Return what each attack said in each setting, in the order in which they first appear.

    ``attack``: columns of which the values, joined by dots, name an attack; ``point``: "" or a column that is not
    there for none; ``decisions``: as in ``Judged``, name → column (None: all columns ``decision_F``).
    """
    columns = table.column_names
    if decisions is None:
        decisions = {name.removeprefix(DECISION): name for name in columns if name.startswith(DECISION)}
    scores = np.asarray(table[score].to_numpy(zero_copy_only=False), dtype=np.float64)
    targets = np.asarray(table[target].to_numpy(zero_copy_only=False))
    points = np.asarray(table[point].to_numpy(zero_copy_only=False)) if point in columns else None
    called = {
        name: np.asarray(table[each].to_numpy(zero_copy_only=False), np.float64) for name, each in decisions.items()
    }
    return [
        Judged(
            setting=name[0],
            attack=".".join(part for part in name[1:] if part),
            scores=scores[rows],
            member=member[rows],
            target=targets[rows],
            point=None if points is None else points[rows],
            decisions={name: values[rows] for name, values in called.items() if not np.isnan(values[rows]).any()},
        )
        for name, rows in places(table, ("setting", *attack))
    ]


def places(table: pa.Table, columns: Sequence[str]) -> list[tuple[tuple[str, ...], NDArray[np.intp]]]:
    """Return the rows of each combination of values in ``columns``, in the order in which these first appear."""
    codes, words = [], []
    for name in columns:
        encoded = table[name].combine_chunks().dictionary_encode()
        codes.append(np.asarray(encoded.indices).astype(np.int64))
        words.append(encoded.dictionary.to_pylist())
    whole = np.zeros(table.num_rows, np.int64)
    for each, named in zip(codes, words, strict=True):
        whole = whole * max(1, len(named)) + each
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    rows = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    found = []
    for place in np.argsort(first):
        at = first[place]
        found.append((tuple(str(named[each[at]]) for each, named in zip(codes, words, strict=True)), rows[place]))
    return found
