"""The scores table of ``mia`` as what each attack said: all points of a target's half against those of its twin's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from audits.statistics.judged import Judged
from orchestrator.engine.kind import ScoresTable
from orchestrator.report.judged import judged_rows

if TYPE_CHECKING:
    import pyarrow as pa


def scores_of(table: pa.Table) -> list[Judged]:
    """Return the scores of each setting and attack, canaries and null models left out; what varies is the pool.

    Both targets of a pool hang on the same draw of a half, so that an interval takes them together.
    """
    ordinary = ~np.asarray(table["canary"].to_numpy(zero_copy_only=False), dtype=bool)
    asked = table.filter(np.asarray(table["role"].to_numpy(zero_copy_only=False) == "target") & ordinary)
    member = np.asarray(asked["member"].to_numpy(zero_copy_only=False), dtype=bool)
    return [replace(each, cluster=each.target // 2) for each in judged_rows(asked, member)]


SCORES = ScoresTable(frozenset({"setting", "attack", "role", "pool", "target", "canary", "member", "score"}), scores_of)
