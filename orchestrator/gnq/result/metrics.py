"""Numbers of a GNQ result that trackers and sweeps read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from audits.gnq.attacks import POOL_ATTACKS
from orchestrator.gnq.plan import NONE, GnqPlan
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


def compared(plan: GnqPlan) -> list[str]:
    """Return the names of the numbers that ``comparison`` returns of a plan, but for arms that diverge."""
    return [
        f"{arm}.{attack}.{shadows}.auc"
        for arm in plan.arms
        for attack in plan.audit.attacks
        for shadows in (taught(arm) if POOL_ATTACKS[attack].shadowed else ("none",))
    ]


def taught(arm: str) -> tuple[str, ...]:
    """Return what shadows an attack learns from under an arm."""
    return ("naive",) if arm == NONE else ("naive", "adaptive")


def comparison(setting: Setting, store: Store) -> dict[str, float]:
    """Return the mean AUC of each arm × attack on all contributors, of a setting whose jobs are done."""
    rows = table(setting.name, assessments(setting, store), setting.plan.audit.level)
    return flat((row for row in rows if (row.group, row.moment) == ("contributors", "after")), COMPARED)
