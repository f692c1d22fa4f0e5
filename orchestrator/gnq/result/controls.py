"""The control of a GNQ run: models that saw no point of a pool must not tell its points apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from audits.gnq.removal import ONE_SIDED
from audits.statistics.controls import corrected, interval_p, off
from orchestrator.gnq.result.rows import AreaRow, ArmRow
from orchestrator.judgement.controls import ControlName
from orchestrator.report.chance import beyond

NULL_MODELS = ControlName("null models", "models that saw none of the points")


def judged(rows: Sequence[AreaRow], level: float) -> tuple[AreaRow, ...]:
    """Return ``rows`` with ``p`` of chance, corrected over all fair cells of the run, and which of them stay off it.

    Fair are cells on null models that have an interval and whose two sides were filtered alike.
    """
    found = [tested(row, level) for row in rows]
    columns = zip(rows, found, corrected(found), strict=True)
    return tuple(replace(row, p=p, p_holm=p_holm, off=off(p_holm, level)) for row, p, p_holm in columns)


def decided(arms: Sequence[ArmRow]) -> tuple[ArmRow, ...]:
    """Return arms with whether their headlines lie above chance, which older results do not say."""
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


def fair(rows: Sequence[AreaRow]) -> list[AreaRow]:
    """Return the cells that the control is judged by."""
    return [row for row in rows if row.p is not None]


def control_warnings(rows: Sequence[AreaRow]) -> list[str]:
    """Return a warning for each setting in which attacks tell apart points that the judged models never saw."""
    tests, lines = len(fair(rows)), []
    for setting in dict.fromkeys(row.setting for row in rows):
        own = [row for row in fair(rows) if row.setting == setting]
        broken = [row for row in own if row.off]
        if broken:
            lines.append(
                f"control failed: setting {setting}: null models, which saw no point of the pool, are not at chance in "
                f"{len(broken)} of {len(own)} cells, also after Holm's correction over the {tests} of the run "
                f"({', '.join(map(named, broken))})"
            )
    return lines


def named(row: AreaRow) -> str:
    """Return a cell with its AUC on null models and its p-value, for a message."""
    return f"{row.attack} ({row.shadows}) on {row.group} of {row.arm} {row.auc.value:.3f}, p = {row.p_holm:.2g}"
