"""The control of a GNQ run: models that saw no point of a pool must not tell its points apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from audits.gnq.removal import ONE_SIDED
from audits.statistics.controls import corrected, interval_p, off
from orchestrator.gnq.result.rows import AreaRow, ArmRow, GnqResult
from orchestrator.gnq.result.words import arm_words
from orchestrator.judgement.controls import ControlName
from orchestrator.judgement.rows import FAILED, FINDINGS, HELD, MISSING, Control
from orchestrator.report.chance import beyond
from orchestrator.report.result import of_setting

NULL_MODELS = ControlName("null models", "models that saw none of the points")


def judged_cells(rows: Sequence[AreaRow], level: float) -> tuple[AreaRow, ...]:
    """Return ``rows`` with ``p`` of chance, corrected over all fair cells of the run, and which of them stay off it.

    Fair are cells on null models that have an interval and whose two sides were filtered alike.
    """
    found = [tested(row, level) for row in rows]
    columns = zip(rows, found, corrected(found), strict=True)
    return tuple(replace(row, p=p, p_holm=p_holm, off=off(p_holm, level)) for row, p, p_holm in columns)


def decided(arms: Sequence[ArmRow]) -> tuple[ArmRow, ...]:
    """Return arms with whether their headlines lie above chance."""
    return tuple(
        replace(arm, headline=replace(arm.headline, above_chance=beyond(arm.headline.auc))) if arm.headline else arm
        for arm in arms
    )


def tested(row: AreaRow, level: float) -> float | None:
    """Return the p-value of an AUC of ½ of a fair cell, by the t interval over pools; None of others."""
    value, low, high = row.auc.value, row.auc.low, row.auc.high
    if row.moment != "null" or row.group in ONE_SIDED or value is None or low is None or high is None:
        return None
    return interval_p(value, low, high, 0.5, level, row.pools - 1)


def controls(result: GnqResult) -> list[Control]:
    """Return the control of each setting: nothing is found in models that saw none of the points."""
    return [null_models(result, entry.setting) for entry in result.settings]


def null_models(result: GnqResult, setting: str) -> Control:
    """Return whether a setting's fair cells are at chance; of those that are not, the one furthest off is shown."""
    rows = [row for row in of_setting(result.table, setting) if row.p is not None]
    if not rows:
        return NULL_MODELS.row(FINDINGS, MISSING, setting, "False alarms of the audit itself would go unnoticed.")
    broken = [row for row in rows if row.off]
    if not broken:
        return NULL_MODELS.row(FINDINGS, HELD, setting, "As it should be, nothing is found there.")
    first = max(broken, key=lambda row: abs(float(row.auc) - 0.5))
    arm = next(arm for arm in of_setting(result.arms, setting) if arm.arm == first.arm)
    most = "most clearly " if len(broken) > 1 else ""
    why = (
        f"Points are told from others even there, in {len(broken)} of {len(rows)} fair comparisons, {most}under "
        f"{arm_words(arm)}."
    )
    return NULL_MODELS.row(FINDINGS, FAILED, setting, why, attack=first.attack, evidence=first.auc)
