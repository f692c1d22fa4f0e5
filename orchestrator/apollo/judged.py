"""The scores table of Apollo as what each attack said: forgotten against unseen points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audits.statistics.judged import Judged
from orchestrator.apollo.plan import CONTROLS
from orchestrator.engine.kind import ScoresTable
from orchestrator.report.judged import judged_rows

if TYPE_CHECKING:
    import pyarrow as pa


def scores_of(table: pa.Table) -> list[Judged]:
    """Return the scores of each setting, unlearner and attack; the retained points are no part of the question."""
    asked = table.filter(np.asarray(table["group"].to_numpy(zero_copy_only=False) != "retained"))
    member = np.asarray(asked["group"].to_numpy(zero_copy_only=False) == "forget")
    return judged_rows(asked, member, attack=("unlearner", "attack"))


SCORES = ScoresTable(
    frozenset({"setting", "unlearner", "attack", "target", "point_id", "group", "score"}),
    scores_of,
    method="unlearner",
    controls=CONTROLS,
    shadows="shadow_set",
)
