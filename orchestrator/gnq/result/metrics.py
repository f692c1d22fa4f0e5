"""Numbers of a GNQ result that trackers and sweeps read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.gnq.result.arms import table
from orchestrator.gnq.result.document import assessments
from orchestrator.gnq.result.gradient_rows import GradientInversionRow, RecoveryCorrelation
from orchestrator.gnq.result.rows import AreaRow, ArmRow, InversionRow, ScoreCorrelation
from orchestrator.report.metrics import Logged, flat, rows_of

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

COMPARED = (Logged("{arm}.{attack}.{shadows}.{metric}", ("auc",)),)


def metrics(document: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return ``arm.group.attack.shadows.metric`` of the published models of a setting, and ``arm.metric`` of its arms.

    Also ``arm.inversion.model.ssim_image``, ``predicts.outcome.score``, and of gradient inversion
    ``gradient_inversion.step.batch.method.given.ssim`` and ``….given.outcome.score``.
    """
    return (
        flat(row for row in rows_of(document, "table", AreaRow, setting) if row.moment == "after")
        | flat(rows_of(document, "arms", ArmRow, setting))
        | flat(rows_of(document, "inversions", InversionRow, setting))
        | flat(rows_of(document, "correlations", ScoreCorrelation, setting))
        | flat(rows_of(document, "gradient_inversions", GradientInversionRow, setting))
        | flat(rows_of(document, "recovery_correlations", RecoveryCorrelation, setting))
    )


def comparison(setting: Setting, store: Store) -> dict[str, float]:
    """Return the mean AUC of each arm × attack on all contributors, of a setting whose jobs are done."""
    rows = table(setting.name, assessments(setting, store), setting.plan.audit.level)
    return flat((row for row in rows if (row.group, row.moment) == ("contributors", "after")), COMPARED)
