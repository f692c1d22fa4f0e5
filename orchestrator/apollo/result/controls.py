"""The controls of an Apollo run: retraining must be at chance, ``identity`` must not, promised rates must be kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from audits.statistics.controls import corrected, off, rate_p
from orchestrator.apollo.plan import control_of
from orchestrator.apollo.result.rows import AttackRow, Standing
from orchestrator.apollo.result.void import FAR, Place, place, with_void
from orchestrator.judgement.controls import ControlName, turned
from orchestrator.report.chance import decided

RETRAIN = ControlName("retrain", "models retrained from scratch")
IDENTITY = ControlName("identity", "models with nothing deleted")
GAP = 0.05
"""Difference of accuracies at kept and at other points from which own models show that they were trained on these."""
OVER = "apollo_over"
HELD: Final = "held"
OFF_CHANCE: Final = "off chance"
NO_POWER: Final = "no power"


def judged(
    rows: Sequence[AttackRow], level: float, unlike: Collection[str] = (), given: Collection[str] = ()
) -> tuple[AttackRow, ...]:
    """Return ``rows`` with whether they are above chance, and with what they say as controls, corrected over all cells
    of the run that say the same kind.

    ``control`` of rows about ``retrain`` and ``identity``: whether it held, or how not. ``found_fpr_off``: more unseen
    points are called forgotten than promised, ``found_fpr_below``: fewer; ``void``: what the first makes worthless.
    ``unlike``: settings whose shadows have another recipe or architecture than their targets; ``given``: methods whose
    rows are about a given model, for whose recipe nobody vouches. No promise is to be expected there, so that an
    interval above it is enough, without a correction for the number of cells; so is, of a given model, an interval over
    its points alone that lies above twice the promise. Rows that were off stay so: a finished
    run that is read again does not say which settings these were.
    """
    rows, chance = decided(rows, level), retrained(rows)
    promises = [promise_p(row, level) for row in rows]
    careful = [careful_p(row, level) for row in rows]
    found = (
        replace(
            row,
            control=standing(row, chance.get(place(row)), level),
            control_p_holm=chance.get(place(row)),
            found_fpr_p=p,
            found_fpr_p_holm=p_holm,
            found_fpr_off=row.found_fpr_off
            or off(p_holm, level)
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


def turned_methods(
    rows: Iterable[tuple[str, str, float | None, float | None]], level: float
) -> list[tuple[str, str, float]]:
    """Return the methods whose deleted points stand out the other way round, each with the attack and its AUC.

    ``rows``: method, attack, AUC and its corrected p-value. Such a method forgot too much, and the deleted points can
    be told by what the model gets wrong; or the lists of deleted and never-seen points are swapped. ``OVER`` is no such
    attack: it looks for points that were forgotten too hard, and lies below one half where they were not.
    """
    by_method: dict[str, list[tuple[str, float | None, float | None]]] = {}
    for method, attack, auc, p_holm in rows:
        if attack != OVER:
            by_method.setdefault(method, []).append((attack, auc, p_holm))
    found = {method: turned(own, level) for method, own in by_method.items()}
    return [(method, *odd) for method, odd in found.items() if odd]


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


def retrained(rows: Sequence[AttackRow]) -> dict[Place, float | None]:
    """Return the cells about ``retrain`` with their p of chance after the correction over all of these."""
    raw = {place(row): row.auc_p for row in rows if row.control_of == RETRAIN.term}
    return dict(zip(raw, corrected(list(raw.values())), strict=True))


def promise_p(row: AttackRow, level: float) -> float | None:
    """Return the p-value of "the rate is at most as promised"; None of the oracle, whose thresholds promise none.

    Results of older versions do not have it: it is then read off the interval.
    """
    rate = row.found_fpr
    if row.access == "oracle" or rate.value is None or rate.low is None:
        return None
    if row.found_fpr_p is not None:
        return row.found_fpr_p
    return rate_p(rate.value, rate.low, row.promised_fpr, level, max(1, row.targets - 1))


def careful_p(row: AttackRow, level: float) -> float | None:
    """Return the p-value of "the rate is at least as promised", as ``promise_p`` does of the other side."""
    rate = row.found_fpr
    if row.access == "oracle" or rate.value is None or rate.high is None:
        return None
    if row.found_fpr_below_p is not None:
        return row.found_fpr_below_p
    return rate_p(1.0 - rate.value, 1.0 - rate.high, 1.0 - row.promised_fpr, level, max(1, row.targets - 1))


def control_warnings(rows: Sequence[AttackRow]) -> list[str]:
    """Return a warning for each control that failed: attacks off chance on ``retrain``, and promises not kept.

    An ``identity`` that shows no power is left to the page and the gate: small audits often have none.
    """
    tests = len({place(row) for row in rows if row.control_of == RETRAIN.term})
    failed = {place(row): row for row in rows if row.control == OFF_CHANCE}
    lines = [
        f"control failed: {attack} against {unlearner} (setting {setting}) has AUC {row.auc.value:.3f}, p = "
        f"{row.control_p_holm:.3g} after Holm's correction over the {tests} of the run; what it finds elsewhere may "
        "not come from unlearning"
        for (setting, unlearner, attack), row in failed.items()
    ]
    return lines + broken_promises(rows)


def broken_promises(rows: Sequence[AttackRow]) -> list[str]:
    """Return a warning for each setting and attack with void rows: the rate that is furthest off, and what is void."""
    found: dict[tuple[str, str], list[AttackRow]] = {}
    for row in rows:
        if row.void:
            found.setdefault((row.setting, row.attack), []).append(row)
    lines = []
    for (setting, attack), void in found.items():
        worst = max(void, key=lambda row: (row.found_fpr.value or 0.0) - row.promised_fpr)
        against = ", ".join(dict.fromkeys(row.unlearner for row in void))
        lines.append(
            f"control failed: {attack} (setting {setting}) calls {worst.found_fpr.value:.1%} of the unseen points "
            f"forgotten at a promised {worst.promised_fpr:.1%} against {worst.unlearner}; its TPR, p- and q-values are "
            f"void against {against}"
        )
    return lines
