"""The scores table of TMIA as what each attack said of the candidates of each selection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from audits.arrays import Bools
from audits.statistics.judged import Judged, rows_by
from orchestrator.engine.kind import SHARED, ScoresTable
from orchestrator.report.judged import judged_rows

if TYPE_CHECKING:
    import pyarrow as pa

SELECTED = "q_"


def scores_of(table: pa.Table) -> list[Judged]:
    """Return, for each setting, selection and attack, what the attack said of the targets.

    As in the cells of the table: ranked attacks score by their p-value, a statistic that failed lies below all others,
    label-only attacks have no selection ``all``, and a target that has not both kinds of pairs is left out.
    """
    targets = table.filter(np.asarray(table["group"].to_numpy(zero_copy_only=False) == "target"))
    asked = _flags(targets, "asked")
    posteriors = np.asarray(targets["access"].to_numpy(zero_copy_only=False) != "labels")
    found = []
    for name in targets.column_names:
        if name.startswith(SELECTED):
            found += _on(targets, _flags(targets, name) & asked, name.removeprefix(SELECTED))
    return [*found, *_on(targets, posteriors, "all")]


def _flags(table: pa.Table, name: str) -> Bools:
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=bool)


def _on(table: pa.Table, chosen: Bools, selection: str) -> list[Judged]:
    """Return what was said of the rows ``chosen``."""
    part = table.filter(chosen)
    member = _flags(part, "member")
    columns: dict[str, str] = {"": "decision"}
    statistics = judged_rows(part, member, target="model", score="statistic", decisions=columns)
    ranks = judged_rows(part, member, target="model", score="p", decisions={})
    found = []
    for said, ranked in zip(statistics, ranks, strict=True):
        scores = said.scores if np.isnan(ranked.scores).all() else -ranked.scores
        whole = replace(said, attack=f"{selection}.{said.attack}", scores=np.where(np.isnan(scores), -np.inf, scores))
        both = [rows for rows in rows_by(whole.target) if 0 < whole.member[rows].sum() < rows.size]
        if both:
            found.append(whole.on(np.concatenate(both)))
    return found


SCORES = ScoresTable(
    frozenset({"setting", "attack", "group", "model", "candidate", "member", "statistic"}), scores_of, shadows=SHARED
)
