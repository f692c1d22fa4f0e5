"""Numbers of a membership result that trackers and sweeps read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.statistics.summary import cells, per_target_auc
from orchestrator.engine.run.scores import joined_scores
from orchestrator.judgement.estimate import Estimate
from orchestrator.mia.result.areas import judged_points
from orchestrator.mia.result.rows import (
    BlindRow,
    CanaryRow,
    DiscoveryRow,
    EpsilonRow,
    FitRow,
    MiaRow,
    OwnRow,
    ShadowRow,
)
from orchestrator.report.metrics import LoggedRow, flat, rows_of

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store
    from orchestrator.mia.plan import MiaPlan

FIELDS = {
    "table": MiaRow,
    "canaries": CanaryRow,
    "shadows": ShadowRow,
    "epsilons": EpsilonRow,
    "fit": FitRow,
    "own": OwnRow,
    "blind": BlindRow,
}


def metrics(document: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return ``attack.metric``, ``attack.rate.metric``, ``attack.shadows.number.metric`` and more of a setting.

    What is void is left out: TPRs and discoveries of attacks that break a promised rate.
    """
    found: dict[str, float] = {}
    for field, form in FIELDS.items():
        found |= flat(map(quoted, rows_of(document, field, form, setting)))
    return found | flat(row for row in rows_of(document, "discoveries", DiscoveryRow, setting) if not row.void)


def quoted(row: LoggedRow) -> LoggedRow:
    """Return a row without the TPR where that is void."""
    if isinstance(row, MiaRow | ShadowRow) and row.void:
        return replace(row, tpr=Estimate())
    return row


def compared(plan: MiaPlan) -> list[str]:
    """Return the names of the numbers that ``comparison`` returns of a plan."""
    return [f"{attack}.auc" for attack in plan.audit.attacks]


def comparison(setting: Setting, store: Store) -> dict[str, float]:
    """Return the mean AUC over targets of each attack, of a setting whose jobs are done."""
    scores = joined_scores([setting], store)
    columns = {name: scores[name].to_numpy(zero_copy_only=False) for name in scores.column_names}
    return {
        f"{cell.attack}.auc": float(np.mean(list(per_target_auc(cell).values())))
        for cell in cells(judged_points(columns))
    }
