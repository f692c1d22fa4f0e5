"""Rows of judged scores by the rules of all audits: what is above chance, and which promised rates are broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from audits.statistics.controls import corrected, off
from orchestrator.report.chance import decided
from orchestrator.scored.rows import ScoreResult, ScoreRow, ValueRow


def judged_rows(rows: Sequence[ScoreRow], level: float) -> tuple[ScoreRow, ...]:
    """Return ``rows`` with whether they are above chance, which promises are broken, and what is void.

    Decisions of the table alone promise a rate (``found_fpr_p`` is known); Holm's correction is over all of these. An
    attack that breaks a promise at one rate of a setting is void at all that it promises.
    """
    adjusted = corrected([row.found_fpr_p for row in rows])
    found = [
        replace(row, found_fpr_p_holm=p_holm, found_fpr_off=off(p_holm, level))
        for row, p_holm in zip(decided(rows, level), adjusted, strict=True)
    ]
    void = {(row.setting, row.attack) for row in found if row.found_fpr_off}
    return tuple(replace(row, void=promises(row) and (row.setting, row.attack) in void) for row in found)


def promises(row: ScoreRow) -> bool:
    """Say whether the decisions of a row are ones that were given with the scores, at a rate that they promise."""
    return row.found_fpr_p is not None


def void_values(values: Sequence[ValueRow], rows: Sequence[ScoreRow]) -> tuple[ValueRow, ...]:
    """Return predictive values with which of them rest on decisions that are void."""
    void = {(row.setting, row.attack, row.promised_fpr) for row in rows if row.void}
    return tuple(replace(each, void=(each.setting, each.attack, each.promised_fpr) in void) for each in values)


def controlled(result: ScoreResult) -> ScoreResult:
    """Return a result whose rows are judged by the rules of this version, also one that an older version wrote."""
    table = judged_rows(result.table, result.level)
    return replace(result, table=table, predictive_values=void_values(result.predictive_values, table))
