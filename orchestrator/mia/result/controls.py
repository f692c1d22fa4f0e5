"""The controls of a membership run: promised rates are kept, canaries are found, and a given model is like own ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from audits.statistics.controls import corrected, off
from orchestrator.judgement.controls import (
    OWN_MODELS,
    ControlName,
    Told,
    agreeing,
    by_attack,
    directions,
    fitted,
    promised,
)
from orchestrator.judgement.rows import FAILED, FINDINGS, HELD, MISSING, Control, State
from orchestrator.mia.result.given import unlike_fits
from orchestrator.mia.result.rows import MiaResult, MiaRow, OwnRow
from orchestrator.mia.result.words import words
from orchestrator.report.chance import decided
from orchestrator.report.numbers import percent
from orchestrator.report.result import of_setting

CANARIES = ControlName("canaries", "planted points with a wrong label")
BLIND = ControlName("members without the model")
POWER: Mapping[State, str] = {
    HELD: "As they should be, they are recognised.",
    FAILED: "They are not recognised, so the audit would not see a leak.",
    MISSING: "It is unknown whether a leak would be found.",
}
"""What is said of canaries and own models."""
Place = tuple[str, str]
"""Setting and attack."""


def judged_rows(rows: Sequence[MiaRow], level: float, unlike: Collection[str] = ()) -> tuple[MiaRow, ...]:
    """Return ``rows`` with whether they are above chance, which promises are broken, corrected over all cells of the
    run, and what is void.

    Rates on null models and on targets' non-members are corrected by themselves. An attack that breaks a promise at one
    rate of a setting is void at all. ``unlike``: settings whose shadows have another recipe or architecture than their
    targets: no promise is to be expected there, so that an interval above it is enough.
    """
    own, null = (
        corrected([row.found_fpr_p for row in rows]),
        corrected([row.null_fpr_p for row in rows]),
    )
    found = [
        replace(
            row,
            found_fpr_p_holm=p_holm,
            found_fpr_off=off(p_holm, level) or (row.setting in unlike and row.found_fpr.above(row.promised_fpr)),
            null_fpr_p_holm=null_holm,
            null_fpr_off=off(null_holm, level) or (row.setting in unlike and row.null_fpr.above(row.promised_fpr)),
        )
        for row, p_holm, null_holm in zip(decided(rows, level), own, null, strict=True)
    ]
    void = {place(row) for row in found if row.found_fpr_off or row.null_fpr_off}
    return tuple(replace(row, void=place(row) in void) for row in found)


def place(row: MiaRow) -> Place:
    """Return the cell of a row."""
    return row.setting, row.attack


def controls(result: MiaResult, setting: str) -> list[Control]:
    """Return the controls of a setting: that a leak would be found, and that nothing else is taken for one.

    The judge stands first among the attacks that must find canaries, or own models beside a given one.
    """
    rows = result.rows(setting)
    name = OWN_MODELS if result.given else CANARIES
    seen = of_setting(result.own, setting) if result.given else of_setting(result.canaries, setting)
    areas = {row.attack: row.auc for row in seen}
    power = by_attack(name, setting, areas, [row.attack for row in rows], (result.judge,), POWER)
    found = [*power, promised(setting, broken(of_setting(result.table, setting)))]
    return [*of_given(result, setting), *found] if result.given else found


def broken(rows: Iterable[MiaRow]) -> list[str]:
    """Return the attacks that break a promised rate, each with the rate that is furthest off."""
    worst: dict[str, tuple[float, str]] = {}
    for row in rows:
        for is_off, rate, whose in (
            (row.found_fpr_off, row.found_fpr, ""),
            (row.null_fpr_off, row.null_fpr, " on null models"),
        ):
            if is_off and rate.value is not None:
                text = f"{words(row.attack)} ({percent(rate.value)}{whose} at a promised {percent(row.promised_fpr)})"
                worst[row.attack] = max(worst.get(row.attack, (-1.0, "")), (rate.value - row.promised_fpr, text))
    return [text for _, text in worst.values()]


def of_given(result: MiaResult, setting: str) -> list[Control]:
    """Return the controls beside a given model: members are like others, stand out the right way, own models fit."""
    found, own = [], of_setting(result.own, setting)
    for row in of_setting(result.blind, setting):
        why = "No classifier of inputs, labels and what shadows say of them tells members from others."
        if row.differ:
            why = (
                "Members differ from others by what they are, without the model, so what is found may not be "
                "membership: give non-members (target.non_members) that are drawn as the members were."
            )
        found.append(BLIND.row(FINDINGS, FAILED if row.differ else HELD, setting, why, evidence=row.auc))
    rows = result.rows(setting)
    found += directions(
        setting,
        [(row.attack, row.auc, row.auc_p_holm) for row in rows],
        result.level,
        "No attack takes members for others.",
        "Members stand out the other way round: are the two lists swapped?",
    )
    found += agreeing(setting, result.judge, sightings(rows), sightings(own))
    unlike = unlike_fits(of_setting(result.fit, setting))
    return [*found, fitted(setting, unlike)] if unlike or own else found


def sightings(rows: Iterable[MiaRow | OwnRow]) -> list[Told]:
    """Return what attacks see of members."""
    return [(row.attack, row.auc.value, row.auc.low, row.auc.high) for row in rows]
