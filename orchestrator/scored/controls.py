"""Rows and controls of judged scores by the rules of all audits: what is above chance, which promises are broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from audits.statistics.controls import corrected, off
from orchestrator.judgement.controls import DIRECTION, PROMISED_RATES, backwards
from orchestrator.judgement.rows import FAILED, HELD, NULLS, RATES, Control
from orchestrator.report.chance import decided
from orchestrator.scored.rows import ScoreRow, ValueRow


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


def controls(rows: Sequence[ScoreRow], level: float) -> list[Control]:
    """Return the controls of each attack: its direction, and whether decisions that came with it keep their promises.

    They are about their own attack alone, since scores of one table may come from several tools: a broken threshold of
    one says nothing of the others.
    """
    by_attack: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in rows:
        by_attack.setdefault((row.setting, row.attack), []).append(row)
    found = [direction(own[0], level) for own in by_attack.values()]
    return found + [promised(own) for own in by_attack.values() if any(map(promises, own))]


def direction(row: ScoreRow, level: float) -> Control:
    """Return whether members have no lower scores than others by an attack."""
    failed = backwards(row.auc.value, row.auc_p_holm, level)
    why = "Members have no lower scores than others."
    if failed:
        why = "Members have lower scores than others, as where --lower-is-member is missing."
    about: dict[str, Any] = {"subject": row.attack, "attack": row.attack, "evidence": row.auc}
    return DIRECTION.row(NULLS, FAILED if failed else HELD, row.setting, why, **about)


def promised(rows: Sequence[ScoreRow]) -> Control:
    """Return whether the decisions of an attack raise no more false alarms than they promise."""
    setting, attack = rows[0].setting, rows[0].attack
    off = [row for row in rows if row.found_fpr_off]
    why = "No more false alarms than promised."
    if off:
        rates = ", ".join(f"{row.found_fpr.value:.1%} at a promised {row.promised_fpr:.1%}" for row in off)
        why = f"More false alarms than promised by {attack} ({rates}): its hit rates are void, its AUC stands."
    return PROMISED_RATES.row(RATES, FAILED if off else HELD, setting, why, subject=attack, attack=attack)
