"""The controls of an Apollo run: retraining must be at chance, ``identity`` must not, promised rates must be kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from audits.statistics.controls import corrected, off
from orchestrator.apollo.plan import control_of
from orchestrator.apollo.result.rows import ApolloResult, AttackRow, Standing
from orchestrator.apollo.result.void import FAR, Place, place, with_void
from orchestrator.apollo.result.words import words
from orchestrator.judgement.controls import LEARNT, ControlName, by_attack, directions, promised
from orchestrator.judgement.rows import FAILED, FINDINGS, HELD, MISSING, NULLS, Control, State
from orchestrator.judgement.wording import capital, named
from orchestrator.report.chance import decided
from orchestrator.report.result import of_setting

RETRAIN = ControlName("retrain", "models retrained from scratch")
IDENTITY = ControlName("identity", "models with nothing deleted")
GAP = 0.05
"""Difference of accuracies at kept and at other points from which own models show that they were trained on these."""
OVER = "apollo_over"
OFF_CHANCE: Final = "off chance"
NO_POWER: Final = "no power"


def judged_rows(
    rows: Sequence[AttackRow], level: float, unlike: Collection[str] = (), given: Collection[str] = ()
) -> tuple[AttackRow, ...]:
    """Return ``rows`` with whether they are above chance, and with what they say as controls, corrected over all cells
    of the run that say the same kind.

    ``control`` of rows about ``retrain`` and ``identity``: whether it held, or how not. ``found_fpr_off``: more unseen
    points are called forgotten than promised, ``found_fpr_below``: fewer; ``void``: what the first makes worthless.
    ``unlike``: settings whose shadows have another recipe or architecture than their targets; ``given``: methods whose
    rows are about a given model, for whose recipe nobody vouches. No promise is to be expected there, so that an
    interval above it is enough, without a correction for the number of cells; so is, of a given model, an interval over
    its points alone that lies above twice the promise.
    """
    rows, chance = decided(rows, level), chance_p(rows)
    promises = [None if row.access == "oracle" else row.found_fpr_p for row in rows]
    careful = [None if row.access == "oracle" else row.found_fpr_below_p for row in rows]
    found = (
        replace(
            row,
            control=standing(row, chance.get(place(row)), level),
            control_p_holm=chance.get(place(row)),
            found_fpr_p=p,
            found_fpr_p_holm=p_holm,
            found_fpr_off=off(p_holm, level)
            or ((row.setting in unlike or row.unlearner in given) and above(row, p))
            or (row.unlearner in given and far_above(row, p)),
            found_fpr_below_p=below_p,
            found_fpr_below=off(below_p_holm, level),
        )
        for row, p, p_holm, below_p, below_p_holm in zip(
            rows, promises, corrected(promises), careful, corrected(careful), strict=True
        )
    )
    return with_void(tuple(found))


def not_learnt(rows: Iterable[tuple[str | None, str, float | None, float]]) -> str | None:
    """Return why a given model cannot have been trained on the points that it is said to have kept; "" if it can.

    ``rows``: the control that they are about or None, method, accuracy at kept points and at test points, of which
    means are taken; those of ``retrain`` are of own models. These must fit the points that they were trained on better
    than others, by ``GAP``, for this to be told: None where they do not. The given model must have a quarter of that
    difference at the least: to forget costs some.
    """
    by_method: dict[tuple[str | None, str], list[tuple[float, float]]] = {}
    for control, method, kept, test in rows:
        if kept is not None:
            # Own models are one kind of model, by whatever names.
            by_method.setdefault((control, "" if control else method), []).append((kept, test))
    means = {
        method: (sum(kept for kept, _ in own) / len(own), sum(test for _, test in own) / len(own))
        for method, own in by_method.items()
    }
    kept, test = means.get((RETRAIN.term, ""), (0.0, 0.0))
    if kept - test <= GAP:
        return None
    for (control, _), (given_kept, given_test) in means.items():
        if control is None and given_kept - given_test < (kept - test) / 4:
            return (
                f"the given model gets {given_kept:.1%} of the points that it is said to have kept and "
                f"{given_test:.1%} of test points right, own models {kept:.1%} and {test:.1%}: either target.members "
                "does not name its training points, or it has lost what it had learnt of them"
            )
    return ""


def above(row: AttackRow, p: float | None) -> bool:
    """Say whether a row that promises a rate (``p`` is known) has an interval above it."""
    return p is not None and row.found_fpr.above(row.promised_fpr)


def far_above(row: AttackRow, p: float | None) -> bool:
    """Say whether one model's own points are called more than ``FAR`` times as often as promised, whatever the reason.

    The interval over shadows is the wider, the less they agree, and may hold the promise for that alone. These shadows
    judged this model: what they say of its points is not at the rate that they promise.
    """
    low = row.found_fpr_exact.low
    return p is not None and low is not None and low > FAR * row.promised_fpr


def standing(row: AttackRow, p_holm: float | None, level: float) -> Standing | None:
    """Return whether a row about ``retrain`` (``p_holm``: of chance) or ``identity`` held, or how not; else None."""
    if row.control_of == RETRAIN.term:
        return OFF_CHANCE if off(p_holm, level) else HELD
    if row.control_of == IDENTITY.term:
        return HELD if row.above_chance else NO_POWER
    return None


def control_in(row: Mapping[str, Any]) -> str | None:
    """Return the control that a row of result.json is about, by its method; None of other methods."""
    return control_of(row["unlearner"], row.get("method"))


def chance_p(rows: Sequence[AttackRow]) -> dict[Place, float | None]:
    """Return the cells about ``retrain`` with their p of chance after the correction over all of these."""
    raw = {place(row): row.auc_p for row in rows if row.control_of == RETRAIN.term}
    return dict(zip(raw, corrected(list(raw.values())), strict=True))


def controls(result: ApolloResult, setting: str) -> list[Control]:
    """Return the controls of a setting: retrained models, untouched models, the models asked, promised rates.

    In untouched models any attack may see the points: of those that a limit or a finding rests on, the one that sees
    most stands first. An oracle, which is no attack, decides where nothing else is looked at.
    """
    table = of_setting(result.table, setting)
    methods = dict.fromkeys(row.unlearner for row in table if row.control_of is None)
    return [
        retrained(setting, table),
        *untouched(result, setting, table),
        *(each for name in methods for each in direction(result, setting, name)),
        *(learnt(result, setting, table) if result.given else []),
        promised(setting, (words(row.attack) for row in table if row.void)),
    ]


def retrained(setting: str, table: Sequence[AttackRow]) -> Control:
    """Return whether nothing is found in models that never saw the deleted points."""
    rows = [row for row in table if row.control_of == RETRAIN.term]
    if not rows:
        return RETRAIN.row(FINDINGS, MISSING, setting, "False alarms of the audit itself would go unnoticed.")
    off = [row for row in rows if row.control == OFF_CHANCE]
    if not off:
        return RETRAIN.row(FINDINGS, HELD, setting, "As it should be, nothing is found there.")
    names = list(dict.fromkeys(words(row.attack) for row in off))
    by = f", by {named(names)}" if len(names) > 1 else ""
    first = max(off, key=lambda row: abs(float(row.auc) - 0.5))
    why = f"Deleted points are told from others even there{by}."
    return RETRAIN.row(FINDINGS, FAILED, setting, why, attack=first.attack, evidence=first.auc)


def untouched(result: ApolloResult, setting: str, table: Sequence[AttackRow]) -> list[Control]:
    """Return whether attacks see points of models of which nothing was deleted: the given one's original if known."""
    why: dict[State, str] = {
        MISSING: "It is unknown whether a leak would be found.",
        FAILED: "Points are not recognised even there, so a leak would not be seen either.",
        HELD: "As it should be, points are recognised there.",
    }
    if result.original:
        why[HELD] = "As it should be, points are recognised in the given model before unlearning."
        why[FAILED] = (
            "Deleted points are not recognised even in the given model before unlearning, which was not trained on the "
            "points of target.forget or learnt too little of them: what is not found now says nothing about unlearning."
        )
    elif result.given:
        why[HELD] = (
            "Only target.original can show whether the given model had learnt the points. In a model of the plan’s "
            "own, as it should be, they are recognised."
        )
    rows = sorted((row for row in table if row.control_of == IDENTITY.term), key=lambda row: float(row.auc))
    areas = {row.attack: row.auc for row in rows}
    seen = {row.attack for row in rows if row.control == HELD}
    oracles = {row.attack for row in table if row.access == "oracle"}
    attacks = list(dict.fromkeys(row.attack for row in table))
    found = by_attack(IDENTITY, setting, areas, attacks, (), why, seen)
    return sorted(found, key=lambda each: each.attack in oracles)


def attacks_on(result: ApolloResult, setting: str, unlearner: str) -> list[AttackRow]:
    """Return the rows of the attacks on a method in a setting; the oracle is none."""
    return [row for row in result.rows(setting) if row.unlearner == unlearner and row.access != "oracle"]


def direction(result: ApolloResult, setting: str, unlearner: str) -> list[Control]:
    """Return whether the deleted points of a method stand out the other way round, by its attacks and by each of them.

    Such a method forgot too much, and its deleted points can be told by what the model gets wrong; or the lists of
    deleted and never-seen points are swapped. ``OVER`` is no such attack: it looks for points that were forgotten too
    hard, and lies below one half where they were not. Where no attack says so, one row is enough.
    """
    asked = [row for row in attacks_on(result, setting, unlearner) if row.attack != OVER]
    held = "No attack takes deleted points for never-seen ones."
    failed = (
        f"What {words(unlearner)} deleted is told by being known less well than never-seen points: the model forgot "
        "too much, which discloses that as well, or the two lists are swapped."
    )
    aucs = [(row.attack, row.auc, row.auc_p_holm) for row in asked]
    rows = directions(setting, aucs, result.level, held, failed, unlearner)
    return rows if any(row.state == FAILED for row in rows) else rows[:1]


def learnt(result: ApolloResult, setting: str, table: Sequence[AttackRow]) -> list[Control]:
    """Return whether a given model learnt the points that it has kept; nothing where own models do not show it."""
    by_method = {row.unlearner: row.control_of for row in table}
    why = not_learnt(
        (by_method.get(row.unlearner), row.unlearner, row.retain_accuracy, row.test_accuracy)
        for row in of_setting(result.setting_utility, setting) or result.utility
    )
    if why is None:
        return []
    text = f"{capital(why)}." if why else "As it should be, the model fits kept points better than test points."
    return [LEARNT.row(NULLS, FAILED if why else HELD, setting, text)]
