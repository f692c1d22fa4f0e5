"""The scores table of GNQ as what each attack said: all points of a target's half against those of its twin's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audits.gnq.attacks import POOL_ATTACKS
from audits.statistics.judged import Judged
from orchestrator.engine.kind import ScoresTable
from orchestrator.report.judged import places

if TYPE_CHECKING:
    import pyarrow as pa

    from audits.arrays import Floats

SHADOWS = ("", "_naive", "_adaptive")


def scores_of(table: pa.Table) -> list[Judged]:
    """Return the scores of each setting, arm and attack (with its shadows); what varies from one to the next is a pool.

    Both targets of a pool hang on the same draw of a half, so that an interval takes them together.
    """
    attacks = [name + shadows for name in POOL_ATTACKS for shadows in SHADOWS if name + shadows in table.column_names]
    columns = {name: table[name].to_numpy() for name in ("pool", "twin", "point_id", "member")}
    target = 2 * columns["pool"] + columns["twin"]
    return [
        Judged(
            setting=setting,
            attack=f"{arm}.{attack}",
            scores=scores[rows],
            member=columns["member"][rows].astype(bool),
            target=target[rows],
            point=columns["point_id"][rows],
            cluster=columns["pool"][rows],
        )
        for (setting, arm), rows in places(table, ("setting", "arm"))
        for attack in attacks
        for scores in [_numbers(table, attack)]
        if not np.isnan(scores[rows]).any()
    ]


def _numbers(table: pa.Table, name: str) -> Floats:
    """Return a column, NaN where it is null."""
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)


SCORES = ScoresTable(frozenset({"setting", "pool", "twin", "arm", "point_id", "member"}), scores_of, method="arm")
